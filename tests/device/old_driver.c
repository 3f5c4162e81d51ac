/* Stands in for the driver's library of a machine whose driver is too old: it says so, and can do nothing. */
int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}

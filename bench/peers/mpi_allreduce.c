/* All-reduce by MPI, measured as `lockstep bench allreduce` measures ours: sums of fp32 in place, calls following each
 * other in batches, the median batch. Prints one JSON object. Arguments: seconds per size, then sizes in bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxBatches = 11, kMaxCalls = 5000 };

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double batch(float* data, int count, int calls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  return (MPI_Wtime() - start) / calls;
}

static int clamp(double value, int low, int high) { return value < low ? low : value > high ? high : (int)value; }

static double median_seconds(float* data, int count, double seconds) {
  batch(data, count, 2);
  const double once = batch(data, count, 3);
  int plan[2];
  plan[0] = clamp(seconds / kMaxBatches / once, 1, kMaxCalls);
  plan[1] = clamp(seconds / once / plan[0], 5, kMaxBatches);
  MPI_Bcast(plan, 2, MPI_INT, 0, MPI_COMM_WORLD);
  double times[kMaxBatches];
  for (int i = 0; i < plan[1]; ++i) times[i] = batch(data, count, plan[0]);
  qsort(times, (size_t)plan[1], sizeof(double), ascending);
  return times[plan[1] / 2];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double seconds = atof(argv[1]);
  if (rank == 0) printf("{\"workers\": %d, \"sizes\": [", ranks);
  for (int i = 2; i < argc; ++i) {
    const long bytes = atol(argv[i]);
    float* data = aligned_alloc(64, (size_t)bytes);
    memset(data, 0, (size_t)bytes);
    const double time = median_seconds(data, (int)(bytes / 4), seconds);
    if (rank == 0)
      printf("%s{\"bytes\": %ld, \"time_us\": %g, \"busbw_gb_s\": %g}", i > 2 ? ", " : "", bytes, time * 1e6,
             bytes / time / 1e9 * 2 * (ranks - 1) / ranks);
    free(data);
  }
  if (rank == 0) printf("]}\n");
  MPI_Finalize();
  return 0;
}

// libFuzzer target: build with -DLOCKSTEP_FUZZ=ON and clang, then
//   fuzz_csv -max_len=4096 NEW_CORPUS tests/fuzz/corpus/csv
#include <cstddef>
#include <cstdint>

#include "fuzz/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_csv_table({reinterpret_cast<const char*>(data), size});
  return 0;
}

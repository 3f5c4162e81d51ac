// libFuzzer target: build with -DLOCKSTEP_FUZZ=ON and clang, then
//   fuzz_job -dict=tests/fuzz/job.dict -max_len=4096 NEW_CORPUS tests/fuzz/corpus/job tests/job/bad
#include <cstddef>
#include <cstdint>

#include "fuzz/job.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_job({reinterpret_cast<const char*>(data), size});
  return 0;
}

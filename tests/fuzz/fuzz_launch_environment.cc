// libFuzzer target: build with -DLOCKSTEP_FUZZ=ON and clang, then
//   fuzz_launch_environment -dict=tests/fuzz/launch_environment.dict -max_len=1024 NEW_CORPUS
//     tests/fuzz/corpus/launch_environment
#include <cstddef>
#include <cstdint>

#include "fuzz/launch_environment.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_launch_environment({reinterpret_cast<const char*>(data), size});
  return 0;
}

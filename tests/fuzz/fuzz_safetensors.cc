// libFuzzer target: build with -DLOCKSTEP_FUZZ=ON and clang, then
//   fuzz_safetensors -dict=tests/fuzz/safetensors.dict -max_len=4096 NEW_CORPUS tests/fuzz/corpus/safetensors
#include <cstddef>
#include <cstdint>

#include "fuzz/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_safetensors({reinterpret_cast<const char*>(data), size});
  return 0;
}

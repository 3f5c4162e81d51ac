// libFuzzer target: build with -DLOCKSTEP_FUZZ=ON and clang, then
//   fuzz_store_message -max_len=512 NEW_CORPUS tests/fuzz/corpus/store_message
#include <cstddef>
#include <cstdint>

#include "fuzz/store_message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_store_message({reinterpret_cast<const char*>(data), size});
  return 0;
}

// libFuzzer target: build with -DLOCKSTEP_FUZZ=ON and clang, then
//   fuzz_block_file -max_len=4096 NEW_CORPUS tests/fuzz/corpus/block_file
#include <cstddef>
#include <cstdint>

#include "fuzz/block_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_block_file({reinterpret_cast<const char*>(data), size});
  return 0;
}

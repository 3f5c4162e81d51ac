// libFuzzer target: `./dev fuzz tokenizer_json`.
#include <cstddef>
#include <cstdint>

#include "fuzz/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_tokenizer_json({reinterpret_cast<const char*>(data), size});
  return 0;
}

// libFuzzer target: `./dev fuzz hf_files`.
#include <cstddef>
#include <cstdint>

#include "fuzz/hf_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  lockstep::testing::check_weight_index(text);
  lockstep::testing::check_preprocessor(text);
  lockstep::testing::check_peft_config(text);
  return 0;
}

// libFuzzer target: `./dev fuzz checkpoint`.
#include <cstddef>
#include <cstdint>

#include "fuzz/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  lockstep::testing::check_manifest(text);
  lockstep::testing::check_saved_state(text);
  return 0;
}

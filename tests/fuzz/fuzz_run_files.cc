// libFuzzer target: `./dev fuzz run_files`.
#include <cstddef>
#include <cstdint>

#include "fuzz/run_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  lockstep::testing::check_metrics(text);
  lockstep::testing::check_summary(text);
  return 0;
}

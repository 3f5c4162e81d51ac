// libFuzzer target: `./dev fuzz job`.
#include <cstddef>
#include <cstdint>

#include "fuzz/job.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_job({reinterpret_cast<const char*>(data), size});
  return 0;
}

// libFuzzer target: `./dev fuzz tfrecord`.
#include <cstddef>
#include <cstdint>

#include "fuzz/record_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_tfrecord({reinterpret_cast<const char*>(data), size});
  return 0;
}

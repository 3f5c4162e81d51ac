// libFuzzer target: `./dev fuzz shard_index`.
#include <cstddef>
#include <cstdint>

#include "fuzz/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_shard_index({reinterpret_cast<const char*>(data), size});
  return 0;
}

// libFuzzer target: `./dev fuzz graph_text`.
#include <cstddef>
#include <cstdint>

#include "fuzz/graph_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_graph_text({reinterpret_cast<const char*>(data), size});
  return 0;
}

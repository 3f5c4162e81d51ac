// libFuzzer target: build with -DLOCKSTEP_FUZZ=ON and clang, then
//   fuzz_graph_text -dict=tests/fuzz/graph_text.dict -max_len=4096 NEW_CORPUS tests/fuzz/corpus/graph_text
#include <cstddef>
#include <cstdint>

#include "fuzz/graph_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::testing::check_graph_text({reinterpret_cast<const char*>(data), size});
  return 0;
}

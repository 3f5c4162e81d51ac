// libFuzzer target: `./dev fuzz csv`.
#include <cstddef>
#include <cstdint>

#include "fuzz/csv.h"
#include "fuzz/record_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  lockstep::testing::check_csv_table(text);
  lockstep::testing::check_csv(text);
  return 0;
}

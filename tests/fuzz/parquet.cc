#include "fuzz/parquet.h"

#include "data/parquet/parquet_format.h"
#include "fuzz/columnar.h"

namespace lockstep::testing {

bool check_parquet(std::string_view bytes) {
  const parquet::Limits small{.page_bytes = 1 << 20, .page_values = 1 << 16};
  return check_columnar([&](const FormatOptions& options) { return make_parquet_format(options, small); },
                        bytes);
}

}  // namespace lockstep::testing

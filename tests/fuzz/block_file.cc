#include "fuzz/block_file.h"

#include "data/format/block_format.h"
#include "fuzz/columnar.h"

namespace lockstep::testing {

bool check_block_file(std::string_view bytes) { return check_columnar(make_block_format, bytes); }

}  // namespace lockstep::testing

#include "fuzz/block_file.h"

#include "data/block/block_format.h"
#include "fuzz/columnar.h"
#include "fuzz/repair.h"

namespace lockstep::testing {

bool check_block_file(std::string_view bytes) {
  if (check_columnar(make_block_format, bytes)) return true;
  check_columnar(make_block_format, repaired_block_file(bytes));
  return false;
}

}  // namespace lockstep::testing

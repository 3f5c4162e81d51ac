// What must hold of any bytes that are found as the index of a shard.
#pragma once
#include <string_view>

namespace lockstep::testing {

// An index that is read must be written as the same bytes, and whichever of its records is asked for, it must
// be found in a granule that holds it. Returns whether it was an index. Throws for anything but a UserError:
// that is a bug.
bool check_shard_index(std::string_view bytes);

}  // namespace lockstep::testing

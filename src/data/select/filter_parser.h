// From the text of a filter to its tree.
#pragma once
#include <string_view>

#include "data/select/filter.h"

namespace lockstep {

// Throws UserError by the character, counted from 1.
FilterNode parse_filter(std::string_view text);

}  // namespace lockstep

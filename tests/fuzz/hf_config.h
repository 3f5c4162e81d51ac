// What must hold of any bytes that are given as the config.json of a Hugging Face folder.
#pragma once
#include <string_view>

namespace lockstep::testing {

// A model comes of it whose numbers are in their limits, and a graph where it is small, or a UserError.
// Returns whether one came. Throws for anything else: that is a bug.
bool check_hf_config(std::string_view text);

}  // namespace lockstep::testing

// What must hold of any bytes that are given as the text of a graph.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Parses the text; a graph that parses must print to a text that parses to the same, be well formed, and go
// through all passes. Returns whether it was a graph. Throws for anything but a UserError: that is a bug.
bool check_graph_text(std::string_view text);

}  // namespace lockstep::testing

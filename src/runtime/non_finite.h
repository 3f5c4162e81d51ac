// Finding where a value first turned infinite or NaN: the guard runs a bad microbatch again with this.
#pragma once
#include <optional>
#include <string>

#include "runtime/executable.h"

namespace lockstep {

struct NonFiniteValue {
  std::string value;    // the name of the graph value
  std::string op;       // the op that made it, or "input"
  int64_t element = 0;  // the first bad element
  double found = 0;     // inf, -inf or nan
  bool in_backward = false;
  double largest = 0;  // the largest finite magnitude that was made before it, and in which value
  std::string largest_value;
};

// Checks the bound inputs, then runs the plan step by step and looks at every floating result. Returns the
// first bad value in program order, or nothing. Slow: every result is brought to the host.
std::optional<NonFiniteValue> first_non_finite(Executable& executable, Backend& backend);

}  // namespace lockstep

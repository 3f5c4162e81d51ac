// A run needs more memory than it may have. The program ends with code 3.
#pragma once
#include "base/error.h"

namespace lockstep {

class DoesNotFit : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace lockstep

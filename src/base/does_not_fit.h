// What a machine lacks for a job: errors with which the program ends with a code of their own
// (docs/errors.md).
#pragma once
#include "base/error.h"

namespace lockstep {

// More memory than the run may have: code 3.
class DoesNotFit : public UserError {
 public:
  using UserError::UserError;
};

// A device: code 5.
class MissingDevice : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace lockstep

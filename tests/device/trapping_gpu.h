// A GPU whose n-th matrix product writes where no memory is: what a fault in the middle of a step looks like.
#pragma once
#include <memory>

#include "backend/backend.h"

namespace lockstep::testing {

std::unique_ptr<Backend> make_trapping_gpu(int64_t fails_at);

}  // namespace lockstep::testing

// The CUDA backend. In a program built without it, no_cuda.cc stands in and says so.
#pragma once
#include <memory>

#include "backend/backend.h"

namespace lockstep {

// UserError with what is missing: the driver, a newer one, a GPU, a library.
std::unique_ptr<Backend> make_cuda_backend(const DeviceOptions& options);

}  // namespace lockstep

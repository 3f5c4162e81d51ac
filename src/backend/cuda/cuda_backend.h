// The CUDA backend. In a program built without it, no_cuda.cc stands in and says so.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace lockstep {

// Why no GPU can be used: none of them, no driver, one that is too old. "" where one can.
std::string refuse_cuda();
// UserError with what is missing: the driver, a newer one, a GPU, a library.
std::unique_ptr<Backend> make_cuda_backend(const DeviceOptions& options);
// Lines for people: the devices, the driver, and each library with what it is used for, or why not.
std::vector<std::string> describe_cuda();

}  // namespace lockstep

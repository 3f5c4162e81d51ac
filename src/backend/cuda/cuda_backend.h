// The CUDA backend. In a program built without it, no_cuda.cc stands in and says so.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace lockstep {

// Why the driver cannot be used: there is none, or it is too old. "" where it can: asked in no time.
std::string refuse_driver();
// The same, or why it shows no GPU. Asking takes as long as the driver takes to look for them.
std::string refuse_cuda();
// UserError with what is missing: the driver, a newer one, a GPU, a library.
std::unique_ptr<Backend> make_cuda_backend(const DeviceOptions& options);
// Lines for people: the devices, the driver, and each library with what it is used for, or why not.
std::vector<std::string> describe_cuda();

}  // namespace lockstep

// Stands in for src/backend/cuda in a program that is built without it.
#include "backend/cuda/cuda_backend.h"
#include "base/does_not_fit.h"

namespace lockstep {

std::string refuse_cuda() { return "this program is built without it"; }

std::unique_ptr<Backend> make_cuda_backend(const DeviceOptions&) {
  throw MissingDevice("device cuda: {}; device: cpu trains on the processor", refuse_cuda());
}

std::vector<std::string> describe_cuda() { return {refuse_cuda()}; }

}  // namespace lockstep

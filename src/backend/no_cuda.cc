// Stands in for src/backend/cuda in a program that is built without it.
#include "backend/cuda/cuda_backend.h"
#include "base/error.h"

namespace lockstep {

std::unique_ptr<Backend> make_cuda_backend(const DeviceOptions&) {
  throw UserError("device cuda: this program is built without it; device: cpu trains on the processor");
}

}  // namespace lockstep

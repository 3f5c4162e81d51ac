#include "backend/cpu/onednn.h"

#include <omp.h>

#include "base/error.h"

namespace lockstep::cpu::onednn {

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::primitive_attr caller_scratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::memory view(const dnnl::memory::desc& desc, const void* data) {
  return {desc, engine(), const_cast<void*>(data)};
}

void run_single_threaded(const dnnl::primitive& primitive,
                         const std::unordered_map<int, dnnl::memory>& args) {
  thread_local const dnnl::stream stream(engine());
  use_one_thread();
  try {
    primitive.execute(stream, args);
  } catch (const dnnl::error& error) {
    rethrow(error);
  }
}

int64_t scratch_bytes(const dnnl::memory::desc& scratchpad) {
  return (static_cast<int64_t>(scratchpad.get_size()) + 63) / 64 * 64;
}

// The setting belongs to the calling thread.
void use_one_thread() { omp_set_num_threads(1); }

void rethrow(const dnnl::error& error) {
  throw DeviceError("oneDNN: {} (status {})", error.what(), static_cast<int>(error.status));
}

}  // namespace lockstep::cpu::onednn

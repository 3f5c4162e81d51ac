// How kernels call oneDNN: one engine, primitives that are made once and run on the calling thread alone.
//
// oneDNN would share a primitive among its own OpenMP team and so let sums depend on the number of threads.
// Here a kernel cuts its work into tasks by shape, and each task runs a whole primitive on one thread of our
// pool. Primitives take their scratch memory from the caller, which makes one object safe to run from several
// threads at once.
#pragma once
#include <cstdint>
#include <dnnl.hpp>
#include <unordered_map>

namespace lockstep::cpu::onednn {

const dnnl::engine& engine();

// Attributes of a primitive that works in scratch memory given by the caller.
dnnl::primitive_attr caller_scratch();

// Calls make() with oneDNN set to one thread, as it must be when a primitive is made; errors become
// DeviceError.
template <typename Make>
auto make_single_threaded(const Make& make);

// A view of memory that oneDNN will only read where it is a source.
dnnl::memory view(const dnnl::memory::desc& desc, const void* data);

void run_single_threaded(const dnnl::primitive& primitive, const std::unordered_map<int, dnnl::memory>& args);

// Bytes of scratch for one run, rounded up so that scratch areas side by side stay aligned.
int64_t scratch_bytes(const dnnl::memory::desc& scratchpad);

// What a primitive keeps: its description and its code. Measured over the convolutions and reorders of
// resnet18; the library shares those of equal shape.
inline constexpr int64_t kPrimitiveBytes = 20 * 1024;

void use_one_thread();
[[noreturn]] void rethrow(const dnnl::error& error);

template <typename Make>
auto make_single_threaded(const Make& make) {
  use_one_thread();
  try {
    return make();
  } catch (const dnnl::error& error) {
    rethrow(error);
  }
}

}  // namespace lockstep::cpu::onednn

// How a CUDA kernel presents itself: which op, when it refuses, how it is made from a node.
#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/kernel.h"
#include "graph/op_def.h"

namespace lockstep::cuda {

// As KernelDef::op: every op with the trait.
inline constexpr std::string_view kAnyPointwise = "any pointwise";
inline constexpr std::string_view kAnyCollective = "any collective";

struct KernelDef {
  std::string_view op;
  std::string_view name;
  // Empty when the kernel can run the node, otherwise the reason why not.
  std::string (*refuse)(const Graph&, const Node&, Device&);
  std::unique_ptr<Kernel> (*make)(const Graph&, const Node&, Device&);
  // Does or begins what takes long, for nodes that it may refuse later; null: nothing does.
  void (*prepare)(const Graph&, const Node&, Device&) = nullptr;
};

using KernelDefs = std::vector<KernelDef>;

// The first kernel of the op that does not refuse, and what those before it said.
KernelChoice choose_kernel(const Graph& graph, const Node& node, Device& device);
// For all nodes of a graph, before the first is chosen for.
void prepare_kernels(const Graph& graph, Device& device);

// A node whose launch only needs its addresses and the stream.
class NodeKernel : public Kernel {
 public:
  void run(const KernelArgs& args) final { launch(args, static_cast<cudaStream_t>(args.queue)); }

 protected:
  virtual void launch(const KernelArgs& args, cudaStream_t stream) = 0;
};

template <typename T = float>
const T* in(const KernelArgs& args, size_t operand) {
  return static_cast<const T*>(args.inputs[operand]);
}
template <typename T = float>
T* out(const KernelArgs& args, size_t result) {
  return static_cast<T*>(args.outputs[result]);
}
inline void* part_of(void* workspace, int64_t offset) { return static_cast<char*>(workspace) + offset; }
inline int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// Between buffers of the device, nothing where they are one.
void copy_on(cudaStream_t stream, void* to, const void* from, int64_t bytes);

template <typename KernelClass>
std::unique_ptr<Kernel> make_kernel(const Graph& graph, const Node& node, Device& device) {
  return std::make_unique<KernelClass>(graph, node, device);
}

// Common refusals.
std::string refuse_nothing(const Graph& graph, const Node& node, Device& device);
std::string refuse_unless_f32(const Graph& graph, const Node& node, Device& device);
std::string refuse_unless_floating(const Graph& graph, const Node& node,
                                   Device& device);  // the first operand

inline const Type& in_type(const Graph& graph, const Node& node, size_t operand) {
  return graph.type(node.inputs[operand]);
}
inline const Type& out_type(const Graph& graph, const Node& node, size_t result) {
  return graph.type(node.outputs[result]);
}

}  // namespace lockstep::cuda

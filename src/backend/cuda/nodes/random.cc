// dropout and round_stochastic.
#include "backend/cuda/kernels/random.h"

#include "backend/cuda/kernel_def.h"

namespace lockstep::cuda {
namespace {

class Dropout : public NodeKernel {
 public:
  Dropout(const Graph& graph, const Node& node, Device&)
      : type_(in_type(graph, node, 0)),
        key_(node.attributes.integer("key")),
        p_(node.attributes.number("p")) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (type_.shape.numel() == 0) return;
    dropout(stream, type_.dtype, args.inputs[0], in<int64_t>(args, 1), key_, p_, args.outputs[0],
            type_.shape.numel());
  }

 private:
  Type type_;
  int64_t key_;
  double p_;
};

class RoundStochastic : public NodeKernel {
 public:
  RoundStochastic(const Graph& graph, const Node& node, Device&)
      : count_(in_type(graph, node, 0).shape.numel()),
        key_(node.attributes.integer("key")),
        first_(node.attributes.integer("first")) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (count_ > 0)
      round_stochastic(stream, in(args, 0), in<int64_t>(args, 1), key_, args.outputs[0], count_, first_);
  }

 private:
  int64_t count_, key_, first_;
};

}  // namespace

void add_random(KernelDefs& defs) {
  defs.push_back({"dropout", "cuda.dropout", refuse_nothing, make_kernel<Dropout>});
  defs.push_back({"round_stochastic", "cuda.round_stochastic", refuse_nothing, make_kernel<RoundStochastic>});
}

}  // namespace lockstep::cuda

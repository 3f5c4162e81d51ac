// max_pool2d, avg_pool2d and their gradients.
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/pool.h"
#include "ops/pool_window.h"

namespace lockstep::cuda {
namespace {

class Pool : public NodeKernel {
 public:
  Pool(const Graph& graph, const Node& node, Device&)
      : largest_(node.op->name.starts_with("max_")), gradient_(node.op->name.ends_with("_grad")) {
    const Shape& images = gradient_ ? out_type(graph, node, 0).shape : in_type(graph, node, 0).shape;
    const Window window = pool_window(images, node.attributes);
    shape_.images = images[0];
    shape_.rows = images[1];
    shape_.columns = images[2];
    shape_.channels = images[3];
    shape_.out_rows = window.rows.output;
    shape_.out_columns = window.columns.output;
    const WindowAxis axes[] = {window.rows, window.columns};
    for (int axis = 0; axis < 2; ++axis) {
      shape_.kernel[axis] = axes[axis].kernel;
      shape_.stride[axis] = axes[axis].stride;
      shape_.before[axis] = axes[axis].before;
    }
    shape_.count_padding = !largest_ && node.attributes.flag("count_include_pad");
    shape_.dtype = out_type(graph, node, 0).dtype;
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (largest_ && gradient_)
      max_pool2d_grad(stream, shape_, args.inputs[0], in<int32_t>(args, 1), args.outputs[0]);
    else if (largest_)
      max_pool2d(stream, shape_, args.inputs[0], args.outputs[0], out<int32_t>(args, 1));
    else if (gradient_)
      avg_pool2d_grad(stream, shape_, args.inputs[0], args.outputs[0]);
    else
      avg_pool2d(stream, shape_, args.inputs[0], args.outputs[0]);
  }

 private:
  bool largest_, gradient_;
  PoolShape shape_;
};

}  // namespace

void add_pools(KernelDefs& defs) {
  for (const std::string_view op : {"max_pool2d", "max_pool2d_grad", "avg_pool2d", "avg_pool2d_grad"})
    defs.push_back({op, "cuda.pool2d", refuse_nothing, make_kernel<Pool>});
}

}  // namespace lockstep::cuda

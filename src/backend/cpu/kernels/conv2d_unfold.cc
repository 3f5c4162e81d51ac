// conv2d and its gradients as matrix products over unfolded windows: for every shape that the faster kernels
// refuse.
#include <algorithm>

#include "backend/cpu/gemm.h"
#include "backend/cpu/unfold.h"

namespace lockstep::cpu {
namespace {

// A dense [rows, outputs of one group] matrix is needed where the images interleave several groups.
class ConvUnfold : public Kernel {
 public:
  ConvUnfold(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), unfold_{conv_shape(graph, node)} {
    prepare_gemm();
  }

  int64_t workspace_bytes() const override {
    return 4 * (matrix_elements() + (shape().groups == 1 ? 0 : most_rows() * shape().outputs_per_group()));
  }

  // The three products differ in which axis is the inner one; this is the largest of them.
  KernelMemory memory() const override {
    return gemm_memory(context_, {most_rows(), unfold_.columns(), most_rows(), false, false});
  }

 protected:
  const ConvShape& shape() const { return unfold_.shape; }
  int64_t most_rows() const { return unfold_.images_at_once() * unfold_.positions(); }
  int64_t matrix_elements() const { return ceil_div(most_rows() * unfold_.columns(), 16) * 16; }
  int64_t filter_elements() const { return shape().outputs_per_group() * unfold_.columns(); }  // of one group

  // Calls body(first image, images) over the batch in pieces that fit the matrix.
  template <typename Body>
  void for_pieces(const Body& body) const {
    const int64_t step = unfold_.images_at_once();
    for (int64_t first = 0; first < shape().batch; first += step)
      body(first, std::min(step, shape().batch - first));
  }
  int64_t image_elements() const {
    return shape().window.rows.input * shape().window.columns.input * shape().channels;
  }
  int64_t result_elements() const { return unfold_.positions() * shape().outputs; }

  // One group's results of some images as a dense matrix: in place when there is one group, else in
  // `scratch`.
  const float* gathered(const float* results, int64_t group, int64_t rows, float* scratch) const {
    if (shape().groups == 1) return results;
    const int64_t width = shape().outputs_per_group();
    copy_columns(context_, rows, width, results + group * width, shape().outputs, scratch, width);
    return scratch;
  }

  CpuContext context_;
  Unfold unfold_;
};

class ForwardUnfold : public ConvUnfold {
 public:
  using ConvUnfold::ConvUnfold;
  void run(const KernelArgs& args) override {
    auto* matrix = static_cast<float*>(args.workspace);
    float* dense = matrix + matrix_elements();
    const int64_t width = shape().outputs_per_group();
    for_pieces([&](int64_t first, int64_t images) {
      const int64_t rows = images * unfold_.positions();
      float* y = static_cast<float*>(args.outputs[0]) + first * result_elements();
      for (int64_t group = 0; group < shape().groups; ++group) {
        unfold_.windows(context_, group, images,
                        static_cast<const float*>(args.inputs[0]) + first * image_elements(), matrix);
        gemm_f32(context_, {rows, width, unfold_.columns(), false, true}, matrix,
                 static_cast<const float*>(args.inputs[1]) + group * filter_elements(), 0.0f,
                 shape().groups == 1 ? y : dense);
        if (shape().groups != 1)
          copy_columns(context_, rows, width, dense, width, y + group * width, shape().outputs);
      }
    });
  }
};

class GradInputUnfold : public ConvUnfold {
 public:
  using ConvUnfold::ConvUnfold;
  void run(const KernelArgs& args) override {
    auto* matrix = static_cast<float*>(args.workspace);
    for_pieces([&](int64_t first, int64_t images) {
      const int64_t rows = images * unfold_.positions();
      const float* dy = static_cast<const float*>(args.inputs[0]) + first * result_elements();
      for (int64_t group = 0; group < shape().groups; ++group) {
        gemm_f32(context_, {rows, unfold_.columns(), shape().outputs_per_group(), false, false},
                 gathered(dy, group, rows, matrix + matrix_elements()),
                 static_cast<const float*>(args.inputs[1]) + group * filter_elements(), 0.0f, matrix);
        unfold_.fold(context_, group, images, matrix,
                     static_cast<float*>(args.outputs[0]) + first * image_elements());
      }
    });
  }
};

class GradFilterUnfold : public ConvUnfold {
 public:
  using ConvUnfold::ConvUnfold;
  void run(const KernelArgs& args) override {
    auto* matrix = static_cast<float*>(args.workspace);
    auto* dw = static_cast<float*>(args.outputs[0]);
    if (shape().batch == 0) std::fill_n(dw, shape().groups * filter_elements(), 0.0f);
    for_pieces([&](int64_t first, int64_t images) {
      const int64_t rows = images * unfold_.positions();
      const float* dy = static_cast<const float*>(args.inputs[1]) + first * result_elements();
      for (int64_t group = 0; group < shape().groups; ++group) {
        unfold_.windows(context_, group, images,
                        static_cast<const float*>(args.inputs[0]) + first * image_elements(), matrix);
        gemm_f32(context_, {shape().outputs_per_group(), unfold_.columns(), rows, true, false},
                 gathered(dy, group, rows, matrix + matrix_elements()), matrix, first == 0 ? 0.0f : 1.0f,
                 dw + group * filter_elements());
      }
    });
  }
};

}  // namespace

KernelDef conv2d_unfold_kernel() {
  return {"conv2d", "cpu.conv2d_unfold", refuse_unless_f32, make_kernel<ForwardUnfold>};
}
KernelDef conv2d_grad_input_unfold_kernel() {
  return {"conv2d_grad_input", "cpu.conv2d_grad_input_unfold", refuse_unless_f32,
          make_kernel<GradInputUnfold>};
}
KernelDef conv2d_grad_filter_unfold_kernel() {
  return {"conv2d_grad_filter", "cpu.conv2d_grad_filter_unfold", refuse_unless_f32,
          make_kernel<GradFilterUnfold>};
}

}  // namespace lockstep::cpu

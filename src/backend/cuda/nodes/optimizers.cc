// Updates of flat f32 buffers, and global_norm.
#include <algorithm>

#include "backend/cuda/nodes/optimizer_kernel.h"
#include "ops/norm_parts.h"

namespace lockstep::cuda {
namespace {

class Sgd : public OptimizerKernel {
 public:
  Sgd(const Graph& graph, const Node& node, Device& device)
      : OptimizerKernel(graph, node, device),
        buffers_(static_cast<int>(node.outputs.size()) - 1),
        momentum_(static_cast<float>(node.attributes.number("momentum"))),
        weight_decay_(static_cast<float>(node.attributes.number("weight_decay"))),
        nesterov_(node.attributes.flag("nesterov")) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    sgd(stream, state(args, stream, buffers_), scalars(args), no_decay(), momentum_, nesterov_,
        weight_decay_);
  }

 private:
  int buffers_;
  float momentum_, weight_decay_;
  bool nesterov_;
};

class Adam : public OptimizerKernel {
 public:
  Adam(const Graph& graph, const Node& node, Device& device)
      : OptimizerKernel(graph, node, device),
        decoupled_(node.op->name == "adamw"),
        attributes_(adam_attributes(node.attributes)) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    adam(stream, state(args, stream, 2), scalars(args), no_decay(), attributes_, decoupled_);
  }

 private:
  bool decoupled_;
  AdamAttributes attributes_;
};

class Lion : public OptimizerKernel {
 public:
  Lion(const Graph& graph, const Node& node, Device& device)
      : OptimizerKernel(graph, node, device), attributes_(adam_attributes(node.attributes)) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    lion(stream, state(args, stream, 1), scalars(args), no_decay(), attributes_);
  }

 private:
  AdamAttributes attributes_;
};

class Lamb : public OptimizerKernel {
 public:
  Lamb(const Graph& graph, const Node& node, Device& device)
      : OptimizerKernel(graph, node, device), attributes_(adam_attributes(node.attributes)) {
    const std::vector<int64_t>& segments = node.attributes.integers("segments");
    std::vector<LambPiece> pieces;
    std::vector<LambTensor> tensors;
    for (size_t i = 0; i < segments.size(); i += 2) {
      const auto first = static_cast<int32_t>(pieces.size());
      const auto tensor = static_cast<int32_t>(tensors.size());
      for (int64_t begin = segments[i]; begin < segments[i + 1]; begin += kLambPiece)
        pieces.push_back(
            {begin, std::min(segments[i + 1], begin + kLambPiece), tensor, decays(segments[i]) ? 1 : 0});
      tensors.push_back({first, static_cast<int32_t>(pieces.size()) - first});
    }
    pieces_ = DeviceArray<LambPiece>(device, pieces);
    tensors_ = DeviceArray<LambTensor>(device, tensors);
  }
  int64_t workspace_bytes() const override { return lamb_workspace(pieces_.size(), tensors_.size()); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    lamb(stream, state(args, stream, 2), scalars(args), attributes_, pieces_.data(), pieces_.size(),
         tensors_.data(), tensors_.size(), args.workspace);
  }

 private:
  AdamAttributes attributes_;
  DeviceArray<LambPiece> pieces_;
  DeviceArray<LambTensor> tensors_;
};

class Adafactor : public OptimizerKernel {
 public:
  Adafactor(const Graph& graph, const Node& node, Device& device)
      : OptimizerKernel(graph, node, device),
        attributes_{node.attributes.number("epsilon"), node.attributes.number("clip"), 0.0},
        weight_decay_(node.attributes.number("weight_decay")),
        matrices_(node.attributes.integers("matrices")),
        vectors_(node.attributes.integers("vectors")) {}

  int64_t workspace_bytes() const override {
    int64_t bytes = 0;
    for (size_t i = 0; i < matrices_.size(); i += 3)
      bytes = std::max(bytes, adafactor_workspace(matrices_[i + 1], matrices_[i + 2]));
    for (size_t i = 0; i < vectors_.size(); i += 2)
      bytes = std::max(bytes, adafactor_workspace(1, vectors_[i + 1] - vectors_[i]));
    return bytes;
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    float* p = bring(args, stream, 0, 0);
    float* rows = bring(args, stream, 2, 1);
    float* columns = bring(args, stream, 3, 2);
    float* whole = bring(args, stream, 4, 3);
    const float* g = in(args, 1);
    for (size_t i = 0; i < matrices_.size(); i += 3) {
      const int64_t at = matrices_[i];
      adafactor_matrix(stream, p + at, g + at, matrices_[i + 1], matrices_[i + 2], rows, columns,
                       scalars(args), at_element(at), args.workspace);
      rows += matrices_[i + 1];
      columns += matrices_[i + 2];
    }
    for (size_t i = 0; i < vectors_.size(); i += 2) {
      const int64_t at = vectors_[i], count = vectors_[i + 1] - at;
      adafactor_vector(stream, p + at, g + at, count, whole, scalars(args), at_element(at), args.workspace);
      whole += count;
    }
  }

 private:
  AdafactorAttributes at_element(int64_t element) const {
    AdafactorAttributes attributes = attributes_;
    attributes.weight_decay = decays(element) ? weight_decay_ : 0.0;
    return attributes;
  }

  AdafactorAttributes attributes_;
  double weight_decay_;
  std::vector<int64_t> matrices_, vectors_;
};

// The operands of a norm, with the addresses of a launch.
class NormOperands {
 public:
  NormOperands(const Graph& graph, const Node& node) {
    for (const Value input : node.inputs) {
      const Type& type = graph.type(input);
      buffers_.push_back({nullptr, type.dtype, type.shape.numel()});
    }
  }
  std::vector<NormBuffer> at(const KernelArgs& args) const {
    std::vector<NormBuffer> buffers = buffers_;
    for (size_t i = 0; i < buffers.size(); ++i) buffers[i].data = args.inputs[i];
    return buffers;
  }
  int64_t workspace_bytes() const { return global_norm_workspace(buffers_); }

 private:
  std::vector<NormBuffer> buffers_;
};

class GlobalNorm : public NodeKernel {
 public:
  GlobalNorm(const Graph& graph, const Node& node, Device&) : operands_(graph, node) {}
  int64_t workspace_bytes() const override { return operands_.workspace_bytes(); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    global_norm(stream, operands_.at(args), out(args, 0), args.workspace);
  }

 private:
  NormOperands operands_;
};

class SquareSums : public NodeKernel {
 public:
  SquareSums(const Graph& graph, const Node& node, Device&) : operands_(graph, node) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    square_sums(stream, operands_.at(args), static_cast<double*>(args.outputs[0]));
  }

 private:
  NormOperands operands_;
};

class NormOfSquares : public NodeKernel {
 public:
  NormOfSquares(const Graph& graph, const Node& node, Device&) {
    for (const Value input : node.inputs) blocks_.push_back(graph.type(input).shape.numel() / kNormPartBytes);
  }
  int64_t workspace_bytes() const override {
    return norm_of_squares_workspace(blocks_.data(), static_cast<int>(blocks_.size()));
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    std::vector<const double*> sums;
    for (size_t i = 0; i < blocks_.size(); ++i) sums.push_back(static_cast<const double*>(args.inputs[i]));
    norm_of_squares(stream, sums.data(), blocks_.data(), static_cast<int>(blocks_.size()), out(args, 0),
                    args.workspace);
  }

 private:
  std::vector<int64_t> blocks_;
};

}  // namespace

void add_optimizers(KernelDefs& defs) {
  defs.push_back({"sgd", "cuda.sgd", refuse_unless_f32, make_kernel<Sgd>});
  defs.push_back({"adam", "cuda.adam", refuse_unless_f32, make_kernel<Adam>});
  defs.push_back({"adamw", "cuda.adamw", refuse_unless_f32, make_kernel<Adam>});
  defs.push_back({"lion", "cuda.lion", refuse_unless_f32, make_kernel<Lion>});
  defs.push_back({"lamb", "cuda.lamb", refuse_unless_f32, make_kernel<Lamb>});
  defs.push_back({"adafactor", "cuda.adafactor", refuse_unless_f32, make_kernel<Adafactor>});
  defs.push_back({"global_norm", "cuda.global_norm", refuse_nothing, make_kernel<GlobalNorm>});
  defs.push_back({"square_sums", "cuda.square_sums", refuse_nothing, make_kernel<SquareSums>});
  defs.push_back({"norm_of_squares", "cuda.norm_of_squares", refuse_unless_f32, make_kernel<NormOfSquares>});
}

}  // namespace lockstep::cuda

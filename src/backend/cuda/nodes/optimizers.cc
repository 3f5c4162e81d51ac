// Updates of flat buffers, and global_norm. Operands are laid out as ops/optimizer.h says.
#include <algorithm>

#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/optimizer.h"
#include "ops/norm_parts.h"
#include "ops/optimizer.h"

namespace lockstep::cuda {
namespace {

// beta1, beta2, epsilon and weight_decay of a node, where it has them.
AdamAttributes adam_attributes(const Attributes& attributes) {
  const auto read = [&](std::string_view name, double absent) {
    return attributes.find(name) != nullptr ? attributes.number(name) : absent;
  };
  return {read("beta1", 0.0), read("beta2", 0.0), read("epsilon", 0.0), read("weight_decay", 0.0)};
}

class OptimizerKernel : public NodeKernel {
 protected:
  OptimizerKernel(const Graph& graph, const Node& node, Device& device)
      : no_decay_(node.attributes.integers("no_decay")), edges_(device, no_decay_) {
    for (const Value input : node.inputs) bytes_.push_back(graph.type(input).bytes());
  }

  StepScalars scalars(const KernelArgs& args) const {
    const size_t first = args.inputs.size() - 3;
    return {in(args, first), in(args, first + 1), in<int64_t>(args, first + 2)};
  }
  NoDecay no_decay() const { return {edges_.data(), static_cast<int>(edges_.size())}; }
  bool decays(int64_t element) const { return lockstep::decays(no_decay_, element); }
  int64_t count() const { return bytes_[0] / static_cast<int64_t>(sizeof(float)); }

  // The buffer that is updated: the result's, holding the operand's values.
  float* bring(const KernelArgs& args, cudaStream_t stream, size_t input, size_t output) const {
    copy_on(stream, args.outputs[output], args.inputs[input], bytes_[input]);
    return out(args, output);
  }
  // p, g and up to two buffers of the parameters' length.
  FlatState state(const KernelArgs& args, cudaStream_t stream, int buffers) const {
    FlatState flat{};
    flat.p = bring(args, stream, 0, 0);
    flat.g = in(args, 1);
    flat.m = buffers > 0 ? bring(args, stream, 2, 1) : nullptr;
    flat.v = buffers > 1 ? bring(args, stream, 3, 2) : nullptr;
    flat.count = count();
    return flat;
  }

 private:
  std::vector<int64_t> bytes_;
  std::vector<int64_t> no_decay_;
  DeviceArray<int64_t> edges_;
};

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

class GlobalNorm : public NodeKernel {
 public:
  GlobalNorm(const Graph& graph, const Node& node, Device&) {
    for (const Value input : node.inputs) counts_.push_back(graph.type(input).shape.numel());
  }
  int64_t workspace_bytes() const override {
    return global_norm_workspace(counts_.data(), static_cast<int>(counts_.size()));
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    std::vector<const float*> buffers;
    for (size_t i = 0; i < counts_.size(); ++i) buffers.push_back(in(args, i));
    global_norm(stream, buffers.data(), counts_.data(), static_cast<int>(counts_.size()), out(args, 0),
                args.workspace);
  }

 private:
  std::vector<int64_t> counts_;
};

class SquareSums : public NodeKernel {
 public:
  SquareSums(const Graph& graph, const Node& node, Device&) {
    for (const Value input : node.inputs) counts_.push_back(graph.type(input).shape.numel());
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    std::vector<const float*> buffers;
    for (size_t i = 0; i < counts_.size(); ++i) buffers.push_back(in(args, i));
    square_sums(stream, buffers.data(), counts_.data(), static_cast<int>(counts_.size()),
                static_cast<double*>(args.outputs[0]));
  }

 private:
  std::vector<int64_t> counts_;
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
  defs.push_back({"global_norm", "cuda.global_norm", refuse_unless_f32, make_kernel<GlobalNorm>});
  defs.push_back({"square_sums", "cuda.square_sums", refuse_unless_f32, make_kernel<SquareSums>});
  defs.push_back({"norm_of_squares", "cuda.norm_of_squares", refuse_unless_f32, make_kernel<NormOfSquares>});
}

}  // namespace lockstep::cuda

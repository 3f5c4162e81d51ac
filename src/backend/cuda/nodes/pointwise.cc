// Pointwise ops, fused and fused_sum: kernels generated from the body of the region.
#include <algorithm>
#include <optional>

#include "backend/cuda/fused_source.h"
#include "backend/cuda/generated_kernels.h"
#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/nodes/sum_plan.h"
#include "ops/fused.h"

namespace lockstep::cuda {
namespace {

constexpr int64_t kThreads = 256;

// One pointwise op as the body of a region.
Graph single_body(const Graph& graph, const Node& node) {
  Graph body(graph.ops(), "body");
  std::vector<Value> inputs;
  for (const Value input : node.inputs)
    inputs.push_back(body.add_input(fmt::format("a{}", inputs.size()), graph.type(input)));
  body.add_output(body.emit_all(*node.op, inputs, node.attributes).at(0));
  return body;
}

Graph body_of(const Graph& graph, const Node& node) {
  return node.op->traits.pointwise ? single_body(graph, node) : fused_body(graph, node);
}

const Node* sum_of(const Graph& body) {
  const bool found = !body.nodes().empty() && body.nodes().back().op->traits.reduction;
  return found ? &body.nodes().back() : nullptr;
}

// What the kernel stores: the results but a sum, then what is summed unless it is a result too.
std::vector<Value> stored_values(const Graph& body) {
  const Node* const sum = sum_of(body);
  std::vector<Value> stored;
  for (const GraphOutput& output : body.outputs())
    if (sum == nullptr || output.value != sum->outputs[0]) stored.push_back(output.value);
  if (sum != nullptr && std::ranges::count(stored, sum->inputs[0]) == 0) stored.push_back(sum->inputs[0]);
  return stored;
}

RegionLayout layout_of(const Graph& body, const std::vector<Value>& stored) {
  std::vector<Shape> operands;
  for (const GraphInput& input : body.inputs()) operands.push_back(body.type(input.value).shape);
  return {body.type(stored.at(0)).shape, operands};
}

class Region : public NodeKernel {
 public:
  Region(const Graph& graph, const Node& node, Device& device)
      : device_(device),
        body_(body_of(graph, node)),
        stored_(stored_values(body_)),
        layout_(layout_of(body_, stored_)),
        source_(fused_source(body_, stored_, layout_, region_width(body_, stored_, layout_))) {
    if (const Node* const sum = sum_of(body_)) {
      sum_.emplace(body_, *sum);
      term_ = static_cast<size_t>(std::ranges::find(stored_, sum->inputs[0]) - stored_.begin());
      // The outputs are the sum and the other results: one more is stored where the term is none of them.
      if (stored_.size() == body_.outputs().size()) term_bytes_ = padded(body_.type(sum->inputs[0]).bytes());
    }
    if (layout_.count > 0) kernel_ = device.generated().get(source_.text);
  }

  // What is summed where it is no result, then the sum's own.
  int64_t workspace_bytes() const override { return sum_ ? term_bytes_ + sum_->workspace_bytes() : 0; }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    std::vector<void*> results(args.outputs.begin() + (sum_ ? 1 : 0), args.outputs.end());
    if (term_bytes_ > 0) results.push_back(args.workspace);
    if (layout_.count > 0) sweep(args, results, stream);
    if (sum_) sum_->run(stream, results[term_], args.outputs[0], part_of(args.workspace, term_bytes_));
  }

 private:
  void sweep(const KernelArgs& args, const std::vector<void*>& results, cudaStream_t stream) {
    cudaKernel_t kernel = kernel_.get();
    int width = source_.width;
    if (width > 1 && !all_aligned(args, results)) {
      kernel = device_.generated().get(fused_source(body_, stored_, layout_, 1).text).get();
      width = 1;
    }
    std::vector<int64_t> packed = arguments(args, results);
    void* pointers[] = {packed.data()};
    const auto blocks = static_cast<unsigned>(ceil_div(ceil_div(layout_.count, width), kThreads));
    require(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(kThreads), pointers, 0,
                             stream),
            "a generated kernel");
  }

  // The fields of the source's struct Args in order; each is 8 bytes.
  std::vector<int64_t> arguments(const KernelArgs& args, const std::vector<void*>& results) const {
    std::vector<int64_t> packed;
    for (void* input : args.inputs) packed.push_back(reinterpret_cast<int64_t>(input));
    for (void* result : results) packed.push_back(reinterpret_cast<int64_t>(result));
    packed.push_back(layout_.count);
    packed.insert(packed.end(), layout_.extents.begin(), layout_.extents.end());
    for (const auto& steps : layout_.strides) packed.insert(packed.end(), steps.begin(), steps.end());
    return packed;
  }

  bool all_aligned(const KernelArgs& args, const std::vector<void*>& results) const {
    const auto aligned = [&](const void* address, DType dtype) {
      const int64_t bytes = std::min<int64_t>(16, source_.width * size_of(dtype));
      return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(bytes) == 0;
    };
    for (size_t i = 0; i < args.inputs.size(); ++i)
      if (!aligned(args.inputs[i], body_.type(body_.inputs()[i].value).dtype)) return false;
    for (size_t i = 0; i < results.size(); ++i)
      if (!aligned(results[i], body_.type(stored_[i]).dtype)) return false;
    return true;
  }

  Device& device_;
  Graph body_;
  std::vector<Value> stored_;
  RegionLayout layout_;
  FusedSource source_;
  GeneratedKernels::Ready kernel_;
  std::optional<SumPlan> sum_;
  size_t term_ = 0;         // among stored_
  int64_t term_bytes_ = 0;  // of the workspace
};

// A sum of 16-bit values over all axes but the last in f32 (the gradient of a bias): sums are in float
// anyway, so the values are read as they are, where the region would write them out in f32 first. The order
// is the same: columns are added row by row, however many a thread has.
class SumOfCast : public NodeKernel {
 public:
  SumOfCast(const Graph& graph, const Node& node, Device&) : SumOfCast(fused_body(graph, node)) {}
  int64_t workspace_bytes() const override { return sum_.workspace_bytes(); }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    sum_.run(stream, args.inputs[0], args.outputs[0], args.workspace);
  }

 private:
  explicit SumOfCast(const Graph& body)
      : sum_(body, body.nodes()[1], body.type(body.inputs()[0].value).dtype) {}
  SumPlan sum_;
};

bool sums_columns(const Shape& from, const Shape& to) {
  return from.rank() > 1 && from[-1] > 1 && to.numel() == from[-1] && from.numel() > from[-1];
}

std::string refuse_unless_sum_of_cast(const Graph& graph, const Node& node, Device&) {
  const Graph body = fused_body(graph, node);
  const auto& nodes = body.nodes();
  const bool is_one = body.inputs().size() == 1 && body.outputs().size() == 1 && nodes.size() == 2 &&
                      nodes[0].op->name == "cast" && nodes[1].op->traits.reduction &&
                      body.type(nodes[0].outputs[0]).dtype == DType::kF32 &&
                      is_floating(body.type(body.inputs()[0].value).dtype) &&
                      body.type(nodes[0].outputs[0]).shape == body.type(body.inputs()[0].value).shape &&
                      sums_columns(body.type(nodes[1].inputs[0]).shape, body.type(nodes[1].outputs[0]).shape);
  return is_one ? "" : "it is more than the sum of columns in f32";
}

std::string refuse(const Graph& graph, const Node& node, Device& device) {
  const Graph body = body_of(graph, node);
  for (const Node& part : body.nodes()) {
    std::string reason = refuse_in_region(body, part);
    if (!reason.empty()) return reason;
    if (part.op->traits.reduction && !is_floating(body.type(part.inputs[0]).dtype))
      return "it sums whole numbers";
  }
  return refuse_generated(device);
}

}  // namespace

void add_pointwise(KernelDefs& defs) {
  defs.push_back({kAnyPointwise, "cuda.pointwise", refuse, make_kernel<Region>});
  defs.push_back({"fused", "cuda.fused", refuse, make_kernel<Region>});
  defs.push_back({"fused_sum", "cuda.sum_of_cast", refuse_unless_sum_of_cast, make_kernel<SumOfCast>});
  defs.push_back({"fused_sum", "cuda.fused_sum", refuse, make_kernel<Region>});
}

}  // namespace lockstep::cuda

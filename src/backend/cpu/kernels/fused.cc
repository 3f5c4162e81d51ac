// fused and fused_sum: their body as one tile program, which a sum drives where there is one.
#include "ops/fused.h"

#include <optional>

#include "backend/cpu/scalar_of.h"
#include "backend/cpu/summation.h"
#include "backend/cpu/tile_program.h"

namespace lockstep::cpu {
namespace {

// Walks the nodes of a fused body in order.
class Lowering {
 public:
  explicit Lowering(const Graph& body) : body_(body), sources_(static_cast<size_t>(body.value_count())) {
    for (const GraphInput& input : body.inputs()) {
      sources_[static_cast<size_t>(input.value.id)] =
          TileSource::operand(static_cast<int>(code_.operands.size()));
      code_.operands.push_back(body.type(input.value));
    }
    for (const Node& node : body.nodes()) lower(node);
    for (const GraphOutput& output : body.outputs())
      if (sum_ == nullptr || output.value != sum_->outputs[0])
        code_.results.push_back(source(output.value).index);
  }

  const TileCode& code() const { return code_; }
  const Node* sum() const { return sum_; }

 private:
  TileSource& source(Value value) { return sources_[static_cast<size_t>(value.id)]; }

  void lower(const Node& node) {
    const Value out = node.outputs[0];
    if (node.op->name == "broadcast") {
      source(out) = source(node.inputs[0]);
    } else if (node.op->name == "constant") {
      const double value = round_to(body_.type(out).dtype, node.attributes.number("value"));
      source(out) = TileSource::constant(static_cast<float>(value));
    } else if (node.op->traits.reduction) {
      sum_ = &node;
      code_.summed = source(node.inputs[0]).index;
    } else {
      std::vector<TileSource> arguments;
      for (const Value input : node.inputs) arguments.push_back(source(input));
      code_.shape = body_.type(out).shape;
      source(out) = TileSource::instruction(
          append_pointwise(code_.instructions, *node.op, node.attributes, arguments, body_.type(out).dtype));
    }
  }

  const Graph& body_;
  std::vector<TileSource> sources_;
  TileCode code_{};
  const Node* sum_ = nullptr;
};

class Fused : public Kernel {
 public:
  Fused(const Graph& graph, const Node& node, const CpuContext& context) : context_(context) {
    const Graph body = fused_body(graph, node);
    Lowering lowering(body);
    if (lowering.sum() != nullptr) summation_.emplace(body, *lowering.sum(), context);
    program_.emplace(lowering.code());
  }

  int64_t workspace_bytes() const override {
    const int64_t sums =
        summation_ ? summation_->workspace_floats() * static_cast<int64_t>(sizeof(float)) : 0;
    return program_->workspace_bytes(context_) + sums;
  }

  void run(const KernelArgs& args) override {
    if (!summation_) return program_->run(context_, args);
    // The sum is the first result; the program stores the others.
    const KernelArgs stored{args.inputs, args.outputs.subspan(1), args.workspace};
    auto* sums =
        reinterpret_cast<float*>(static_cast<char*>(args.workspace) + program_->workspace_bytes(context_));
    summation_->run(*program_->terms(context_, stored), args.outputs[0], sums);
  }

 private:
  CpuContext context_;
  std::optional<TileProgram> program_;
  std::optional<Summation> summation_;
};

std::string refuse(const Graph& graph, const Node& node) {
  const Graph body = fused_body(graph, node);
  for (const Node& simple : body.nodes()) {
    if (simple.op->traits.pointwise) {
      std::string reason = refuse_as_tile(body, simple);
      if (!reason.empty()) return reason;
    }
    if (!simple.op->traits.reduction) continue;
    if (!is_floating(body.type(simple.inputs[0]).dtype)) return "it sums whole numbers";
    const int32_t producer = body.producer(simple.inputs[0]);
    if (producer < 0 || !body.nodes()[static_cast<size_t>(producer)].op->traits.pointwise)
      return "it sums an operand as it is";
  }
  return "";
}

}  // namespace

KernelDef fused_kernel() { return {"fused", "cpu.fused", refuse, make_kernel<Fused>}; }
KernelDef fused_sum_kernel() { return {"fused_sum", "cpu.fused_sum", refuse, make_kernel<Fused>}; }

}  // namespace lockstep::cpu

// Pointwise ops on whole numbers, exact: i32 and i64 do not fit in f32 arithmetic. Sums and products wrap
// around. Ops that have no whole-number form here go through their op's own formula in double.
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cpu/kernel_def.h"

namespace lockstep::cpu {
namespace {

using Whole = int64_t (*)(const int64_t*);

int64_t wrapped(uint64_t bits) { return static_cast<int64_t>(bits); }
uint64_t bits(int64_t value) { return static_cast<uint64_t>(value); }

constexpr std::array<std::pair<std::string_view, Whole>, 12> kArithmetic = {{
    {"add", [](const int64_t* x) { return wrapped(bits(x[0]) + bits(x[1])); }},
    {"sub", [](const int64_t* x) { return wrapped(bits(x[0]) - bits(x[1])); }},
    {"mul", [](const int64_t* x) { return wrapped(bits(x[0]) * bits(x[1])); }},
    {"neg", [](const int64_t* x) { return wrapped(0 - bits(x[0])); }},
    {"abs", [](const int64_t* x) { return x[0] < 0 ? wrapped(0 - bits(x[0])) : x[0]; }},
    {"sign", [](const int64_t* x) { return int64_t{x[0] > 0} - int64_t{x[0] < 0}; }},
    {"relu", [](const int64_t* x) { return x[0] > 0 ? x[0] : 0; }},
    {"minimum", [](const int64_t* x) { return x[1] < x[0] ? x[1] : x[0]; }},
    {"maximum", [](const int64_t* x) { return x[1] > x[0] ? x[1] : x[0]; }},
    {"where", [](const int64_t* x) { return x[0] != 0 ? x[1] : x[2]; }},
    {"cast", [](const int64_t* x) { return x[0]; }},
    {"logical_not", [](const int64_t* x) { return int64_t{x[0] == 0}; }},
}};

constexpr std::array<std::pair<std::string_view, Whole>, 6> kComparisons = {{
    {"eq", [](const int64_t* x) { return int64_t{x[0] == x[1]}; }},
    {"ne", [](const int64_t* x) { return int64_t{x[0] != x[1]}; }},
    {"lt", [](const int64_t* x) { return int64_t{x[0] < x[1]}; }},
    {"le", [](const int64_t* x) { return int64_t{x[0] <= x[1]}; }},
    {"gt", [](const int64_t* x) { return int64_t{x[0] > x[1]}; }},
    {"ge", [](const int64_t* x) { return int64_t{x[0] >= x[1]}; }},
}};

Whole whole_form(const Graph& graph, const Node& node) {
  for (const auto* values : {&node.inputs, &node.outputs})
    for (const Value value : *values)
      if (is_floating(graph.type(value).dtype)) return nullptr;
  if (node.op->name == "compare") {
    for (const auto& [name, formula] : kComparisons)
      if (name == node.attributes.text("op")) return formula;
  }
  for (const auto& [name, formula] : kArithmetic)
    if (name == node.op->name) return formula;
  return nullptr;
}

int64_t read_whole(DType dtype, const void* data, int64_t index) {
  switch (dtype) {
    case DType::kI64: return static_cast<const int64_t*>(data)[index];
    case DType::kI32: return static_cast<const int32_t*>(data)[index];
    default: return static_cast<const uint8_t*>(data)[index];
  }
}

void write_whole(DType dtype, void* data, int64_t index, int64_t value) {
  switch (dtype) {
    case DType::kI64: static_cast<int64_t*>(data)[index] = value; return;
    case DType::kI32: static_cast<int32_t*>(data)[index] = static_cast<int32_t>(value); return;
    case DType::kBool: static_cast<uint8_t*>(data)[index] = value != 0 ? 1 : 0; return;
    default: static_cast<uint8_t*>(data)[index] = static_cast<uint8_t>(value); return;
  }
}

class PointwiseExact : public Kernel {
 public:
  PointwiseExact(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        whole_(whole_form(graph, node)),
        formula_(node.op->scalar),
        attributes_(node.attributes),
        out_(graph.type(node.outputs[0])) {
    for (const Value value : node.inputs) in_.push_back(graph.type(value).dtype);
  }

  void run(const KernelArgs& args) override {
    for_rows(context_, out_.shape.numel(), kTaskElements, [&](int64_t begin, int64_t end) {
      if (whole_ != nullptr)
        run_whole(args, begin, end);
      else
        run_double(args, begin, end);
    });
  }

 private:
  void run_whole(const KernelArgs& args, int64_t begin, int64_t end) const {
    std::array<int64_t, 3> x{};
    for (int64_t i = begin; i < end; ++i) {
      for (size_t k = 0; k < in_.size(); ++k) x[k] = read_whole(in_[k], args.inputs[k], i);
      write_whole(out_.dtype, args.outputs[0], i, whole_(x.data()));
    }
  }

  void run_double(const KernelArgs& args, int64_t begin, int64_t end) const {
    std::vector<double> x(in_.size());
    for (int64_t i = begin; i < end; ++i) {
      for (size_t k = 0; k < in_.size(); ++k) x[k] = read_element(in_[k], args.inputs[k], i);
      write_element(out_.dtype, args.outputs[0], i, formula_(x, attributes_));
    }
  }

  CpuContext context_;
  Whole whole_;
  double (*formula_)(std::span<const double>, const Attributes&);
  Attributes attributes_;
  Type out_;
  std::vector<DType> in_;
};

std::string refuse(const Graph&, const Node& node) {
  return node.inputs.size() <= 3 ? "" : "more than three operands";
}

}  // namespace

KernelDef pointwise_exact_kernel() {
  return {kAnyPointwise, "cpu.pointwise_exact", refuse, make_kernel<PointwiseExact>};
}

}  // namespace lockstep::cpu

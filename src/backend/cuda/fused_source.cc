#include "backend/cuda/fused_source.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "base/error.h"
#include "graph/op_def.h"

namespace lockstep::cuda {
namespace {

constexpr const char* kPrelude = R"(
typedef unsigned short Bits16;
__device__ __forceinline__ float from_bf16(Bits16 x) { return __uint_as_float((unsigned)x << 16); }
__device__ __forceinline__ Bits16 to_bf16(float x) {
  Bits16 y; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y;
}
__device__ __forceinline__ float from_f16(Bits16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; }
__device__ __forceinline__ Bits16 to_f16(float x) {
  Bits16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y;
}
template <typename T, int N> struct Pack {
  static constexpr int kBytes = sizeof(T) * N;
  alignas(kBytes > 16 ? 16 : kBytes) T v[N];
};
using namespace lockstep_pointwise;
)";

bool is_whole(DType dtype) { return dtype == DType::kI32 || dtype == DType::kI64; }

const char* storage(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "float";
    case DType::kBF16:
    case DType::kF16: return "Bits16";
    case DType::kI32: return "int";
    case DType::kI64: return "long long";
    case DType::kU8:
    case DType::kBool: return "unsigned char";
  }
  return "";
}

std::string loaded(DType dtype, const std::string& from) {
  switch (dtype) {
    case DType::kBF16: return fmt::format("from_bf16({})", from);
    case DType::kF16: return fmt::format("from_f16({})", from);
    case DType::kI32:
    case DType::kI64: return fmt::format("(long long){}", from);
    case DType::kF32: return from;
    case DType::kU8:
    case DType::kBool: return fmt::format("(float){}", from);
  }
  return "";
}

// What is stored; values are already rounded to their type.
std::string to_store(DType dtype, const std::string& from) {
  switch (dtype) {
    case DType::kBF16: return fmt::format("to_bf16({})", from);
    case DType::kF16: return fmt::format("to_f16({})", from);
    case DType::kF32: return from;
    case DType::kI32: return fmt::format("(int){}", from);
    case DType::kI64: return from;
    case DType::kU8:
    case DType::kBool: return fmt::format("(unsigned char){}", from);
  }
  return "";
}

std::string rounded(DType dtype, const std::string& expression) {
  switch (dtype) {
    case DType::kF32: return fmt::format("(float)({})", expression);
    case DType::kBF16: return fmt::format("from_bf16(to_bf16((float)({})))", expression);
    case DType::kF16: return fmt::format("from_f16(to_f16((float)({})))", expression);
    case DType::kI32: return fmt::format("(long long)(int)({})", expression);
    case DType::kI64: return fmt::format("(long long)({})", expression);
    case DType::kU8: return fmt::format("(float)(unsigned char)(long long)({})", expression);
    case DType::kBool: return fmt::format("(({}) != 0 ? 1.0f : 0.0f)", expression);
  }
  return "";
}

std::string float_literal(double value) {
  return fmt::format("__uint_as_float(0x{:08x}u)", std::bit_cast<uint32_t>(static_cast<float>(value)));
}

std::string literal(DType dtype, double value) {
  if (is_whole(dtype)) return fmt::format("{}LL", static_cast<int64_t>(value));
  return float_literal(round_to(dtype, value));
}

constexpr std::array kSameName = {"add",     "sub",   "mul",       "div",        "neg",  "abs",
                                  "sign",    "sqrt",  "rsqrt",     "exp",        "log",  "tanh",
                                  "erf",     "pow",   "sigmoid",   "relu",       "silu", "minimum",
                                  "maximum", "where", "silu_grad", "logical_not"};

std::string call(std::string_view function, const std::vector<std::string>& arguments) {
  return fmt::format("f_{}({})", function, fmt::join(arguments, ", "));
}

// In float arithmetic; "" where there is no formula.
std::string float_formula(const Node& node, const std::vector<std::string>& x) {
  const std::string_view op = node.op->name;
  const bool tanh = (op == "gelu" || op == "gelu_grad") && node.attributes.text("approximate") == "tanh";
  if (op == "gelu") return call(tanh ? "gelu_tanh" : "gelu_erf", x);
  if (op == "gelu_grad") return call(tanh ? "gelu_tanh_grad" : "gelu_erf_grad", x);
  if (op == "cast") return x[0];
  if (op == "compare") return call(node.attributes.text("op"), x);
  if (op == "clamp")
    return fmt::format("f_minimum(f_maximum({}, {}), {})", x[0], float_literal(node.attributes.number("low")),
                       float_literal(node.attributes.number("high")));
  if (std::find(kSameName.begin(), kSameName.end(), op) != kSameName.end()) return call(op, x);
  return "";
}

// In 64-bit arithmetic that wraps around; what has no whole form goes through double, as on the processor.
std::string whole_formula(const Node& node, const std::vector<std::string>& x) {
  const std::string_view op = node.op->name;
  const auto wrapping = [&](char sign) {
    return fmt::format("(long long)((unsigned long long)({}) {} (unsigned long long)({}))", x[0], sign, x[1]);
  };
  if (op == "add") return wrapping('+');
  if (op == "sub") return wrapping('-');
  if (op == "mul") return wrapping('*');
  if (op == "div") return fmt::format("(long long)((double)({}) / (double)({}))", x[0], x[1]);
  if (op == "neg") return fmt::format("(long long)(0ull - (unsigned long long)({}))", x[0]);
  if (op == "abs")
    return fmt::format("(({0}) < 0 ? (long long)(0ull - (unsigned long long)({0})) : ({0}))", x[0]);
  if (op == "sign") return fmt::format("(({0}) > 0 ? 1LL : ({0}) < 0 ? -1LL : 0LL)", x[0]);
  if (op == "relu") return fmt::format("(({0}) > 0 ? ({0}) : 0LL)", x[0]);
  if (op == "minimum") return fmt::format("(({1}) < ({0}) ? ({1}) : ({0}))", x[0], x[1]);
  if (op == "maximum") return fmt::format("(({1}) > ({0}) ? ({1}) : ({0}))", x[0], x[1]);
  if (op == "where") return fmt::format("(({}) != 0 ? ({}) : ({}))", x[0], x[1], x[2]);
  if (op == "cast") return x[0];
  if (op == "logical_not") return fmt::format("(({}) == 0 ? 1LL : 0LL)", x[0]);
  if (op == "clamp") {
    const auto bound = [&](const char* name) {
      return fmt::format("__longlong_as_double(0x{:016x}ull)",
                         std::bit_cast<uint64_t>(node.attributes.number(name)));
    };
    return fmt::format(
        "((double)({0}) < {1} ? (long long){1} : (double)({0}) > {2} ? (long long){2} : ({0}))", x[0],
        bound("low"), bound("high"));
  }
  if (op == "compare") {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOrders = {
        {{"eq", "=="}, {"ne", "!="}, {"lt", "<"}, {"le", "<="}, {"gt", ">"}, {"ge", ">="}}};
    for (const auto& [name, sign] : kOrders)
      if (name == node.attributes.text("op"))
        return fmt::format("(({}) {} ({}) ? 1LL : 0LL)", x[0], sign, x[1]);
  }
  return "";
}

bool in_whole_numbers(const Graph& body, const Node& node) {
  for (const auto* values : {&node.inputs, &node.outputs})
    for (const Value value : *values)
      if (is_floating(body.type(value).dtype)) return false;
  return true;
}

std::string formula(const Graph& body, const Node& node, std::vector<std::string> arguments) {
  const bool whole = in_whole_numbers(body, node);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_long = is_whole(body.type(node.inputs[i]).dtype);
    if (whole && !is_long) arguments[i] = fmt::format("(long long)({})", arguments[i]);
    if (!whole && is_long) arguments[i] = fmt::format("(float)({})", arguments[i]);
  }
  return whole ? whole_formula(node, arguments) : float_formula(node, arguments);
}

bool takes_part(const Node& node) {
  return !node.op->traits.reduction && node.op->name != "broadcast" && node.op->name != "constant";
}

class Writer {
 public:
  Writer(const Graph& body, const std::vector<Value>& stored, const RegionLayout& layout, int width)
      : body_(body),
        stored_(stored),
        layout_(layout),
        width_(width),
        names_(static_cast<size_t>(body.value_count())) {}

  std::string write() {
    const bool wide = layout_.count * 1 >= std::numeric_limits<int32_t>::max();
    std::string text = std::string(kPointwiseFunctions) + kPrelude;
    text += fmt::format("typedef unsigned {} Index;\n", wide ? "long long" : "int");
    text += fmt::format(
        "struct Args {{ const void* in[{0}]; void* out[{1}]; long long count; long long extent[{2}]; long "
        "long "
        "step[{0}][{2}]; }};\n",
        body_.inputs().size(), stored_.size(), layout_.axes());
    text += "extern \"C\" __global__ void __launch_bounds__(256) kernel(const Args a) {\n";
    text += fmt::format("  const Index i = ((Index)blockIdx.x * 256 + threadIdx.x) * {};\n", width_);
    text += "  if (i >= (Index)a.count) return;\n";
    text += coordinates();
    for (size_t k = 0; k < body_.inputs().size(); ++k) text += load(k);
    for (size_t r = 0; r < stored_.size(); ++r)
      text += fmt::format("  Pack<{}, {}> r{};\n", storage(body_.type(stored_[r]).dtype), width_, r);
    text += fmt::format("#pragma unroll\n  for (int e = 0; e < {}; ++e) {{\n", width_);
    text += statements();
    text += "  }\n";
    for (size_t r = 0; r < stored_.size(); ++r) {
      const char* const type = storage(body_.type(stored_[r]).dtype);
      text += fmt::format("  *(Pack<{0}, {1}>*)(({0}*)a.out[{2}] + i) = r{2};\n", type, width_, r);
    }
    return text + "}\n";
  }

 private:
  std::string coordinates() const {
    if (layout_.axes() == 1) return "  const Index c0 = i;\n";
    std::string text = "  Index rest = i;\n";
    for (int axis = layout_.axes() - 1; axis > 0; --axis)
      text += fmt::format("  const Index c{0} = rest % (Index)a.extent[{0}]; rest /= (Index)a.extent[{0}];\n",
                          axis);
    return text + "  const Index c0 = rest;\n";
  }

  std::string load(size_t operand) {
    const DType dtype = body_.type(body_.inputs()[operand].value).dtype;
    std::string place;
    for (int axis = 0; axis < layout_.axes(); ++axis)
      place += fmt::format("{}(long long)c{} * a.step[{}][{}]", axis == 0 ? "" : " + ", axis, operand, axis);
    const bool one = width_ == 1 || layout_.repeated_inside(operand);
    if (one)
      return fmt::format("  const {0} x{1} = ((const {0}*)a.in[{1}])[{2}];\n", storage(dtype), operand,
                         place);
    return fmt::format(
        "  const Pack<{0}, {1}> x{2} = *(const Pack<{0}, {1}>*)((const {0}*)a.in[{2}] + ({3}));\n",
        storage(dtype), width_, operand, place);
  }

  std::string& name(Value value) { return names_[static_cast<size_t>(value.id)]; }

  std::string statements() {
    std::string text;
    for (size_t k = 0; k < body_.inputs().size(); ++k) {
      const Value input = body_.inputs()[k].value;
      const DType dtype = body_.type(input).dtype;
      const bool one = width_ == 1 || layout_.repeated_inside(k);
      name(input) = fmt::format("a{}", k);
      text += fmt::format("    const {} a{} = {};\n", is_whole(dtype) ? "long long" : "float", k,
                          loaded(dtype, one ? fmt::format("x{}", k) : fmt::format("x{}.v[e]", k)));
    }
    int next = 0;
    for (const Node& node : body_.nodes()) {
      const Value out = node.outputs[0];
      const DType dtype = body_.type(out).dtype;
      if (node.op->name == "broadcast") {
        name(out) = name(node.inputs[0]);
      } else if (node.op->name == "constant") {
        name(out) = literal(dtype, node.attributes.number("value"));
      } else if (takes_part(node)) {
        std::vector<std::string> arguments;
        for (const Value input : node.inputs) arguments.push_back(name(input));
        name(out) = fmt::format("t{}", next++);
        text += fmt::format("    const {} {} = {};\n", is_whole(dtype) ? "long long" : "float", name(out),
                            rounded(dtype, formula(body_, node, arguments)));
      }
    }
    for (size_t r = 0; r < stored_.size(); ++r)
      text +=
          fmt::format("    r{}.v[e] = {};\n", r, to_store(body_.type(stored_[r]).dtype, name(stored_[r])));
    return text;
  }

  const Graph& body_;
  const std::vector<Value>& stored_;
  const RegionLayout& layout_;
  int width_;
  std::vector<std::string> names_;
};

}  // namespace

std::string refuse_in_region(const Graph& body, const Node& node) {
  if (!takes_part(node)) return "";
  const std::vector<std::string> any(node.inputs.size(), "x");
  if (!formula(body, node, any).empty()) return "";
  return fmt::format("no formula computes {} of {}", node.op->name, name_of(body.type(node.inputs[0]).dtype));
}

FusedSource fused_source(const Graph& body, const std::vector<Value>& stored, const RegionLayout& layout,
                         int width) {
  return {Writer(body, stored, layout, width).write(), width,
          layout.count >= std::numeric_limits<int32_t>::max()};
}

int region_width(const Graph& body, const std::vector<Value>& stored, const RegionLayout& layout) {
  int64_t widest = 1;
  for (const GraphInput& input : body.inputs())
    widest = std::max(widest, size_of(body.type(input.value).dtype));
  for (const Value value : stored) widest = std::max(widest, size_of(body.type(value).dtype));
  for (int width = widest <= 2 ? 8 : 4; width > 1; width /= 2)
    if (layout.allows_width(width)) return width;
  return 1;
}

}  // namespace lockstep::cuda

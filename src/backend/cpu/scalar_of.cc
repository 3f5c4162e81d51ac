#include "backend/cpu/scalar_of.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"

namespace lockstep::cpu {
namespace {

using Row = std::pair<std::string_view, Scalar>;

constexpr std::array kPlain = {
    Row{"add", Scalar::add},
    Row{"sub", Scalar::sub},
    Row{"mul", Scalar::mul},
    Row{"div", Scalar::div},
    Row{"neg", Scalar::neg},
    Row{"exp", Scalar::exp},
    Row{"log", Scalar::log},
    Row{"sqrt", Scalar::sqrt},
    Row{"rsqrt", Scalar::rsqrt},
    Row{"tanh", Scalar::tanh},
    Row{"erf", Scalar::erf},
    Row{"sigmoid", Scalar::sigmoid},
    Row{"softplus", Scalar::softplus},
    Row{"relu", Scalar::relu},
    Row{"silu", Scalar::silu},
    Row{"abs", Scalar::abs},
    Row{"sign", Scalar::sign},
    Row{"square", Scalar::square},
    Row{"reciprocal", Scalar::reciprocal},
    Row{"minimum", Scalar::min},
    Row{"maximum", Scalar::max},
    Row{"pow", Scalar::pow},
    Row{"where", Scalar::where},
    Row{"cast", Scalar::copy},
    Row{"logical_not", Scalar::logical_not},
    Row{"logical_and", Scalar::logical_and},
    Row{"logical_or", Scalar::logical_or},
};

constexpr std::array kComparisons = {Row{"eq", Scalar::eq}, Row{"ne", Scalar::ne}, Row{"lt", Scalar::lt},
                                     Row{"le", Scalar::le}, Row{"gt", Scalar::gt}, Row{"ge", Scalar::ge}};

template <size_t kSize>
std::optional<Scalar> look_up(const std::array<Row, kSize>& table, std::string_view name) {
  const auto* found =
      std::find_if(table.begin(), table.end(), [&](const Row& row) { return row.first == name; });
  if (found == table.end()) return std::nullopt;
  return found->second;
}

// Ops that are one scalar function, perhaps chosen by an attribute.
std::optional<Scalar> single(std::string_view op, const Attributes& attributes) {
  if (op == "compare") return look_up(kComparisons, attributes.text("op"));
  if (op == "gelu") return attributes.text("approximate") == "tanh" ? Scalar::gelu_tanh : Scalar::gelu_erf;
  return look_up(kPlain, op);
}

// Ops of the form f'(x) * dy.
std::optional<Scalar> derivative(std::string_view op, const Attributes& attributes) {
  if (op == "gelu_grad")
    return attributes.text("approximate") == "tanh" ? Scalar::gelu_tanh_grad : Scalar::gelu_erf_grad;
  if (op == "silu_grad") return Scalar::silu_grad;
  return std::nullopt;
}

}  // namespace

std::string refuse_as_tile(const Graph& graph, const Node& node) {
  const std::string_view op = node.op->name;
  if (op != "clamp" && !single(op, node.attributes) && !derivative(op, node.attributes))
    return fmt::format("no vector loop computes {}", op);
  const DType out = graph.type(node.outputs[0]).dtype;
  if (out == DType::kI64) return "the result is i64, which f32 arithmetic would round";
  for (const Value value : node.inputs) {
    const DType dtype = graph.type(value).dtype;
    if (dtype == DType::kI64 || (dtype == DType::kI32 && !is_floating(out)))
      return fmt::format("{} is {}, which f32 arithmetic would round", graph.name(value), name_of(dtype));
  }
  return "";
}

int append_pointwise(std::vector<TileInstruction>& program, const OpDef& op, const Attributes& attributes,
                     std::span<const TileSource> arguments, DType dtype) {
  const auto append = [&](Scalar function, std::initializer_list<TileSource> sources, DType rounded_to) {
    TileInstruction instruction{.function = function, .dtype = rounded_to};
    std::copy(sources.begin(), sources.end(), instruction.sources.begin());
    program.push_back(instruction);
    return TileSource::instruction(static_cast<int>(program.size()) - 1);
  };
  if (op.name == "clamp") {
    const auto low = TileSource::constant(static_cast<float>(attributes.number("low")));
    const auto high = TileSource::constant(static_cast<float>(attributes.number("high")));
    return append(Scalar::min, {append(Scalar::max, {arguments[0], low}, DType::kF32), high}, dtype).index;
  }
  if (const auto slope = derivative(op.name, attributes))
    return append(Scalar::mul, {append(*slope, {arguments[0]}, DType::kF32), arguments[1]}, dtype).index;
  const auto function = single(op.name, attributes);
  if (!function) throw InternalError("no tile instruction for op {}", op.name);
  TileInstruction instruction{.function = *function, .dtype = dtype};
  std::copy_n(arguments.begin(), arity(*function), instruction.sources.begin());
  program.push_back(instruction);
  return static_cast<int>(program.size()) - 1;
}

}  // namespace lockstep::cpu

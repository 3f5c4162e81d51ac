#include "ops/gather_unit.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::string_view kStart = "gather_unit_start";
constexpr std::string_view kDone = "gather_unit_done";
constexpr std::string_view kPart = "unit_part";

AttributeDef unit_attribute() { return {"unit", int64_t{0}, "which unit, in the order of the layout", true}; }

}  // namespace

bool gathers_unit(const Node& node) { return node.op->name == kStart || node.op->name == kDone; }
bool is_unit_part(const Node& node) { return node.op->name == kPart; }

int32_t unit_start_of(const Graph& graph, const Node& part) {
  const Node& done = graph.nodes()[static_cast<size_t>(graph.producer(part.inputs[0]))];
  return graph.producer(done.inputs[0]);
}

int64_t view_offset(const Graph& graph, const Node& node) {
  if (!is_unit_part(node)) return 0;
  return node.attributes.integer("offset") * size_of(graph.type(node.inputs[0]).dtype);
}

OpDef gather_unit_start_op() {
  OpDef def{.name = kStart, .summary = "begins to gather the parameters of a unit"};
  def.attributes = {unit_attribute(),
                    {"numel", int64_t{0}, "elements of the unit, padding included", true},
                    {"dtype", DType::kF32, "what its parameters are stored in"},
                    {"group", std::string(kUnitGroup), "the workers that own pieces of it"}};
  def.min_inputs = def.max_inputs = 0;
  def.traits = {.collective = true};
  def.stage = Stage::kScheduled;
  def.done = kDone;
  def.infer = [](const InferContext& c) {
    const int64_t numel = c.attributes().integer("numel");
    if (numel < 0) c.fail("numel is {}; a unit has at least 0 elements", numel);
    return std::vector<Type>{{c.attributes().dtype("dtype"), {numel}}};
  };
  return def;
}

OpDef gather_unit_done_op() {
  OpDef def{.name = kDone, .summary = "the parameters of a unit, each of which its part waits for"};
  def.attributes = {unit_attribute()};
  def.traits = {.view = true, .collective = true};
  def.stage = Stage::kScheduled;
  def.infer = [](const InferContext& c) { return std::vector<Type>{c.type(0)}; };
  def.cost = [](const Graph&, const Node&) { return Cost{}; };
  return def;
}

OpDef unit_part_op() {
  OpDef def{.name = kPart, .summary = "one parameter of a unit that was gathered"};
  def.attributes = {{"param", std::string(), "its name", true},
                    {"offset", int64_t{0}, "where it begins, in elements of the unit", true},
                    {"shape", std::vector<int64_t>{}, "its extents", true},
                    {"dtype", DType::kF32, "what it is stored in"}};
  def.traits = {.view = true};
  def.stage = Stage::kScheduled;
  def.infer = [](const InferContext& c) {
    const Type part{c.attributes().dtype("dtype"), Shape(c.attributes().integers("shape"))};
    const int64_t begin = c.attributes().integer("offset") * size_of(c.type(0).dtype);
    if (begin < 0 || begin + part.bytes() > c.type(0).bytes())
      c.fail("bytes {} to {} are not in the unit, which has {}", begin, begin + part.bytes(),
             c.type(0).bytes());
    return std::vector<Type>{part};
  };
  def.reference = [](const ReferenceContext& c) {
    LOCKSTEP_CHECK(c.in(0).type.dtype == c.out().type.dtype, "the interpreter has no bytes to read {} from",
                   to_string(c.out().type));
    std::copy_n(c.in(0).data.begin() + c.attributes.integer("offset"), c.out().numel(), c.out().data.begin());
  };
  return def;
}

}  // namespace lockstep

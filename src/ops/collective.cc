#include "ops/collective.h"

namespace lockstep {
namespace {

// Over another axis of the mesh than its own: element by element, except along the axes that it joins or
// cuts. All are linear, so that sums over the other axis may come after as well.
std::vector<ShardingSignature> shard_across(const Graph& graph, const Node& node) {
  const auto same = [](Placement placement) { return ShardingSignature{{placement}, {placement}}; };
  std::vector<ShardingSignature> signatures{same(Placement::replicate()), same(Placement::partial())};
  const int rank = graph.type(node.inputs[0]).shape.rank();
  for (int axis = 0; axis < rank; ++axis) {
    bool moved = false;
    for (const std::string_view name : {"axis", "split_axis", "concat_axis"})
      if (const Attribute* own = node.attributes.find(name))
        moved |= (std::get<int64_t>(*own) + rank) % rank == axis;
    if (!moved) signatures.push_back(same(Placement::split(axis)));
  }
  return signatures;
}

}  // namespace

OpDef make_collective(std::string_view name, std::string_view start, std::string_view done,
                      std::string_view summary, std::vector<AttributeDef> more) {
  OpDef def{.name = name, .summary = summary};
  def.attributes = {{"group", std::string(), "the workers that take part", true},
                    {"size", int64_t{0}, "how many they are", true}};
  def.attributes.insert(def.attributes.end(), more.begin(), more.end());
  def.traits = {.collective = true};
  def.sharding = shard_across;
  def.start = start;
  def.done = done;
  return def;
}

OpDef make_start(const OpDef& whole) {
  OpDef def = whole;
  def.name = whole.start;
  def.summary = "begins the transfer of the collective it is named after";
  def.stage = Stage::kScheduled;
  def.start = {};
  def.gradient = nullptr;
  return def;
}

OpDef make_done(const OpDef& whole) {
  OpDef def{.name = whole.done, .summary = "waits for the end of a transfer and hands its result on"};
  def.min_inputs = 1;
  def.max_inputs = 2;
  def.traits = {.view = true, .collective = true};
  def.stage = Stage::kScheduled;
  def.infer = [](const InferContext& c) { return std::vector<Type>{c.type(0)}; };
  def.cost = [](const Graph&, const Node&) { return Cost{}; };
  return def;
}

int64_t group_size(const InferContext& context) {
  const int64_t size = context.attributes().integer("size");
  if (context.attributes().text("group").empty()) context.fail("group must name the workers that take part");
  constexpr int64_t kMostWorkers = 1 << 20;  // extents times the size stay far from overflow
  if (size < 1 || size > kMostWorkers)
    context.fail("size is {}; it must be the number of workers in the group, at most {}", size, kMostWorkers);
  return size;
}

void require_worker(const InferContext& context, std::string_view attribute) {
  const int64_t worker = context.attributes().integer(attribute), size = group_size(context);
  if (worker < 0 || worker >= size)
    context.fail("{} is {}; the workers of group {} are 0 to {}", attribute, worker,
                 context.attributes().text("group"), size - 1);
}

void require_summable(const InferContext& context) {
  if (context.type(0).dtype == DType::kBool) context.fail("bool cannot be summed; cast it to i32");
}

Attributes same_group(const Attributes& attributes) {
  return {{"group", attributes.text("group")}, {"size", attributes.integer("size")}};
}

Type token_type() { return {DType::kF32, {0}}; }

}  // namespace lockstep

#include "runtime/flat.h"

#include <algorithm>

#include "base/error.h"
#include "graph/op_def.h"
#include "passes/autodiff.h"

namespace lockstep {

namespace {

int64_t padded(const Shape& shape) { return (shape.numel() + kFlatBlock - 1) / kFlatBlock * kFlatBlock; }

bool is_cast(const Node& node) { return node.op->name == "cast"; }

// Of what is read, behind casts.
Value behind_casts(const Graph& graph, Value value) {
  while (graph.producer(value) >= 0 && is_cast(graph.nodes()[static_cast<size_t>(graph.producer(value))]))
    value = graph.nodes()[static_cast<size_t>(graph.producer(value))].inputs[0];
  return value;
}

}  // namespace

std::vector<int64_t> first_blocks(const Graph& graph) {
  std::vector<int64_t> blocks(static_cast<size_t>(graph.value_count()), -1);
  int64_t block = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->name == "checkpoint") ++block;
    if (is_cast(node)) continue;
    for (const Value operand : node.inputs) {
      const Value input = behind_casts(graph, operand);
      if (graph.producer(input) >= 0) continue;
      if (int64_t& first = blocks[static_cast<size_t>(input.id)]; first < 0) first = block;
    }
  }
  return blocks;
}

void FlatLayout::add(std::string name, const Shape& shape, int64_t block, int stage) {
  LOCKSTEP_CHECK(statistics_.empty(), "parameter {} after the statistics", name);
  entries_.push_back({std::move(name), shape, numel_, block, stage});
  numel_ += padded(shape);
}

void FlatLayout::add_statistic(std::string name, const Shape& shape) {
  statistics_.push_back({std::move(name), shape, sums_numel()});
  statistics_numel_ += padded(shape);
}

int64_t FlatLayout::sums_offset(int64_t element) const {
  const int64_t gradients = std::min(element, numel_);
  return gradients * size_of(dtype_) + (element - gradients) * size_of(DType::kF32);
}

const FlatEntry& FlatLayout::find(std::string_view name) const {
  for (const FlatEntry& entry : entries_)
    if (entry.name == name) return entry;
  throw InternalError("no parameter {} in the flat layout", name);
}

DType trained_dtype(const Graph& graph) {
  Value first;
  for (const GraphInput& input : graph.inputs()) {
    if (input.role != Role::kParam) continue;
    const DType dtype = graph.type(input.value).dtype;
    if (dtype != DType::kF32 && dtype != DType::kBF16)
      throw UserError("parameter {} is stored in {}; trained parameters are f32 or bf16",
                      graph.name(input.value), name_of(dtype));
    if (!first.valid()) first = input.value;
    if (dtype != graph.type(first).dtype)
      throw UserError("parameter {} is stored in {} and {} in {}; trained ones must have one type",
                      graph.name(first), name_of(graph.type(first).dtype), graph.name(input.value),
                      name_of(dtype));
  }
  return first.valid() ? graph.type(first).dtype : DType::kF32;
}

FlatLayout backward_order_layout(const Graph& differentiated) {
  struct Written {
    int32_t by;
    std::string name;
    Shape shape;
    int64_t block;
  };
  const std::vector<int64_t> blocks = first_blocks(differentiated);
  std::vector<Written> written;
  for (const GraphInput& input : differentiated.inputs()) {
    if (input.role != Role::kParam) continue;
    const std::string& name = differentiated.name(input.value);
    const Value slot = differentiated.find(grad_name(name));
    for (const GraphOutput& output : differentiated.outputs())
      if (output.target == slot && slot.valid())
        written.push_back({differentiated.producer(output.value), name,
                           differentiated.type(input.value).shape,
                           std::max<int64_t>(0, blocks[static_cast<size_t>(input.value.id)])});
  }
  std::stable_sort(written.begin(), written.end(),
                   [](const Written& a, const Written& b) { return a.by < b.by; });
  FlatLayout layout(trained_dtype(differentiated));
  for (Written& entry : written) layout.add(std::move(entry.name), entry.shape, entry.block);
  for (const GraphInput& input : differentiated.inputs())
    if (input.role == Role::kStatistic)
      layout.add_statistic(differentiated.name(input.value), differentiated.type(input.value).shape);
  return layout;
}

}  // namespace lockstep

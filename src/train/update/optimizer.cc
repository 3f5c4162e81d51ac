#include "train/update/optimizer.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/nearest.h"
#include "ops/rounded_update.h"
#include "ops/stochastic_rounding.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"sgd", "adam", "adamw", "lamb", "lion", "adafactor"};

// Ranges of a part of the flat buffer whose parameters are not decayed, neighbours joined.
std::vector<int64_t> no_decay_ranges(const FlatLayout& layout, Slice part,
                                     const std::vector<ParamInit>& params) {
  std::vector<int64_t> ranges;
  for (const FlatEntry& entry : layout.entries()) {
    const int64_t begin = std::max(entry.offset, part.begin) - part.begin;
    const int64_t end = std::min(entry.offset + entry.shape.numel(), part.end) - part.begin;
    if (begin >= end || init_of(params, entry.name).decay) continue;
    if (!ranges.empty() && ranges.back() == begin)
      ranges.back() = end;
    else
      ranges.insert(ranges.end(), {begin, end});
  }
  return ranges;
}

std::vector<int64_t> segments(const FlatLayout& layout) {
  std::vector<int64_t> pairs;
  for (const FlatEntry& entry : layout.entries())
    pairs.insert(pairs.end(), {entry.offset, entry.offset + entry.shape.numel()});
  return pairs;
}

// Whose draws round the elements of a part. Parameters and parts begin on block edges.
std::vector<int64_t> draws(const FlatLayout& layout, Slice part) {
  static_assert(kFlatBlock % kDrawBlock == 0);
  std::vector<int64_t> triples;
  for (const FlatEntry& entry : layout.entries()) {
    const int64_t begin = std::max(entry.offset, part.begin);
    if (begin >= std::min(entry.offset + entry.shape.numel(), part.end)) continue;
    triples.insert(triples.end(), {begin - part.begin, rounding_key(entry.name), begin - entry.offset});
  }
  return triples;
}

// Adafactor keeps row and column means of tensors with two axes or more, seen as [rows, last axis].
struct Factored {
  std::vector<int64_t> matrices;  // (offset, rows, columns)
  std::vector<int64_t> vectors;   // [begin, end)
  int64_t rows = 0, columns = 0, whole = 0;
};

Factored factored(const FlatLayout& layout) {
  Factored result;
  for (const FlatEntry& entry : layout.entries()) {
    const int64_t numel = entry.shape.numel();
    if (entry.shape.rank() < 2) {
      result.vectors.insert(result.vectors.end(), {entry.offset, entry.offset + numel});
      result.whole += numel;
      continue;
    }
    const int64_t columns = entry.shape[-1];
    result.matrices.insert(result.matrices.end(), {entry.offset, numel / columns, columns});
    result.rows += numel / columns;
    result.columns += columns;
  }
  return result;
}

Attributes attributes_of(const FlatLayout& layout, const OptimizerSettings& s) {
  if (s.name == "sgd")
    return {{"momentum", s.momentum}, {"nesterov", s.nesterov}, {"weight_decay", s.weight_decay}};
  if (s.name == "lion") return {{"beta1", s.beta1}, {"beta2", s.beta2}, {"weight_decay", s.weight_decay}};
  if (s.name == "adafactor") {
    const Factored f = factored(layout);
    return {{"weight_decay", s.weight_decay}, {"matrices", f.matrices}, {"vectors", f.vectors}};
  }
  Attributes attributes = adamw_attributes(s, true);
  if (s.name == "lamb") attributes.set("segments", segments(layout));
  return attributes;
}

}  // namespace

const ParamInit& init_of(const std::vector<ParamInit>& params, const std::string& name) {
  const auto found =
      std::find_if(params.begin(), params.end(), [&](const ParamInit& p) { return p.name == name; });
  LOCKSTEP_CHECK(found != params.end(), "parameter {} is not the model's", name);
  return *found;
}

Attributes adamw_attributes(const OptimizerSettings& settings, bool decay) {
  return {{"beta1", settings.beta1},
          {"beta2", settings.beta2},
          {"epsilon", settings.epsilon},
          {"weight_decay", decay ? settings.weight_decay : 0.0}};
}

bool updates_elements(const OptimizerSettings& settings) {
  return settings.name != "lamb" && settings.name != "adafactor";
}

bool supports_row_updates(const OptimizerSettings& settings) { return settings.name == "adamw"; }

std::vector<StateBuffer> optimizer_state(const FlatLayout& layout, const OptimizerSettings& settings) {
  const int64_t n = layout.numel();
  const DType dtype = settings.moments;
  if (std::find(kNames.begin(), kNames.end(), settings.name) == kNames.end())
    throw UserError("unknown optimizer {}; {}", settings.name, suggestion(settings.name, kNames));
  if (layout.dtype() == DType::kBF16 && !updates_elements(settings))
    throw UserError("{} cannot update parameters that are kept in bf16 alone; use adamw, adam, lion or sgd",
                    settings.name);
  LOCKSTEP_CHECK(dtype == DType::kF32 || layout.dtype() == dtype, "moments in {} of parameters in {}",
                 name_of(dtype), name_of(layout.dtype()));
  if (settings.name == "sgd")
    return settings.momentum != 0 ? std::vector<StateBuffer>{{"momentum", n, dtype}}
                                  : std::vector<StateBuffer>{};
  if (settings.name == "lion") return {{"moment1", n, dtype}};
  if (settings.name == "adam" || settings.name == "adamw" || settings.name == "lamb")
    return {{"moment1", n, dtype}, {"moment2", n, dtype}};
  const Factored f = factored(layout);
  return {{"row_means", f.rows}, {"column_means", f.columns}, {"whole", f.whole}};
}

std::vector<StatePart> optimizer_parts(const FlatLayout& layout, const OptimizerSettings& settings) {
  std::vector<StatePart> parts;
  if (settings.name != "adafactor") {
    for (const StateBuffer& buffer : optimizer_state(layout, settings))
      for (const FlatEntry& entry : layout.entries())
        parts.push_back({buffer.name, entry.name, entry.shape, entry.offset, buffer.dtype});
    return parts;
  }
  int64_t rows = 0, columns = 0, whole = 0;  // so far, in the order of factored()
  for (const FlatEntry& entry : layout.entries()) {
    const int64_t numel = entry.shape.numel();
    if (entry.shape.rank() < 2) {
      parts.push_back({"whole", entry.name, entry.shape, whole});
      whole += numel;
      continue;
    }
    const int64_t last = entry.shape[-1];
    parts.push_back({"row_means", entry.name, {numel / last}, rows});
    parts.push_back({"column_means", entry.name, {last}, columns});
    rows += numel / last;
    columns += last;
  }
  return parts;
}

void emit_optimizer(Graph& graph, Value p, Value g, Value scale, Value lr, Value step,
                    const FlatLayout& layout, Slice part, const std::vector<ParamInit>& params,
                    const OptimizerSettings& settings) {
  std::vector<Value> operands{p, g};
  std::vector<Value> targets{p};
  for (const StateBuffer& state : optimizer_state(layout, settings)) {
    const int64_t numel = updates_elements(settings) ? part.size() : state.numel;
    operands.push_back(graph.add_input(state.name, {state.dtype, {numel}}, Role::kState));
    targets.push_back(operands.back());
  }
  Attributes attributes = attributes_of(layout, settings);
  attributes.set("no_decay", no_decay_ranges(layout, part, params));
  if (layout.dtype() == DType::kBF16) {
    operands.push_back(graph.add_input(kUpdateRounding, {DType::kI64, {2}}));
    attributes.set("draws", draws(layout, part));
  }
  operands.insert(operands.end(), {scale, lr, step});
  const auto updated = graph.emit_all(settings.name, operands, attributes);
  for (size_t i = 0; i < targets.size(); ++i) graph.add_update(targets[i], updated[i]);
}

}  // namespace lockstep

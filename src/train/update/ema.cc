#include "train/update/ema.h"

#include "base/error.h"
#include "ops/builder.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

void average(Builder& b, std::string_view param, std::string_view average, const Type& type, double decay) {
  const Value p = b.cast(b.graph().add_input(param, type, Role::kParam), DType::kF32);
  const Value a = b.graph().add_input(average, {DType::kF32, type.shape}, Role::kState);
  b.graph().add_update(a, b.add(a, b.scale(b.sub(p, a), 1.0 - decay)));
}

}  // namespace

std::string average_name(std::string_view param) { return fmt::format("average.{}", param); }

Graph build_ema_update(Type params, const std::vector<RowTable>& tables, double decay) {
  LOCKSTEP_CHECK(decay > 0 && decay < 1, "a decay of {}", decay);
  Graph graph(all_ops(), "ema");
  Builder b(graph);
  if (params.shape.numel() > 0) average(b, "params", "average", params, decay);
  for (const RowTable& table : tables)
    average(b, table.name, average_name(table.name), {DType::kF32, table.table}, decay);
  return graph;
}

}  // namespace lockstep

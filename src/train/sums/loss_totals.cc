#include "train/sums/loss_totals.h"

#include "ops/builder.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

Graph add_graph() {
  Graph graph(all_ops(), "add_loss");
  Builder b(graph);
  const auto add_term = [&](const std::string& name, DType dtype) {
    const Value sum = graph.add_input(name, {dtype, {}}, Role::kGrad);
    const Value term = graph.add_input(name + "_term", {dtype, {}}, Role::kGrad);
    graph.add_update(sum, b.add(sum, term));
  };
  add_term("loss", DType::kF32);
  add_term("count", DType::kI64);
  return graph;
}

}  // namespace

LossTotals::LossTotals(Backend& backend, int64_t slots)
    : backend_(backend),
      memory_(backend.allocate(slots * static_cast<int64_t>(sizeof(LossTotal)))),
      adder_(std::make_unique<Executable>(make_plan(add_graph(), backend), backend)) {}

void* LossTotals::loss(int64_t slot) const {
  return static_cast<char*>(memory_->data()) + slot * static_cast<int64_t>(sizeof(LossTotal));
}

void* LossTotals::count(int64_t slot) const {
  return static_cast<char*>(loss(slot)) + offsetof(LossTotal, count);
}

void LossTotals::add(int64_t slot, void* loss_term, void* count_term, bool first) {
  if (first) {
    backend_.compute().copy(loss(slot), loss_term, sizeof(LossTotal::loss));
    backend_.compute().copy(count(slot), count_term, sizeof(LossTotal::count));
    return;
  }
  adder_->bind("loss", loss(slot));
  adder_->bind("loss_term", loss_term);
  adder_->bind("count", count(slot));
  adder_->bind("count_term", count_term);
  adder_->enqueue();
}

LossTotal LossTotals::read(int64_t slot) const {
  LossTotal total;
  backend_.download(&total.loss, loss(slot), sizeof total.loss);
  backend_.download(&total.count, count(slot), sizeof total.count);
  return total;
}

void LossTotals::write(int64_t slot, const LossTotal& total) {
  backend_.upload(loss(slot), &total.loss, sizeof total.loss);
  backend_.upload(count(slot), &total.count, sizeof total.count);
}

}  // namespace lockstep

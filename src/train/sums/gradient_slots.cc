#include "train/sums/gradient_slots.h"

#include <algorithm>

#include "ops/builder.h"
#include "ops/registry.h"
#include "runtime/compile.h"

namespace lockstep {
namespace {

constexpr int64_t kFloat = sizeof(float);
constexpr int64_t kId = sizeof(int32_t);

std::string term_name(int64_t term) { return fmt::format("sum{}", term); }

// Every sum of two is rounded to the type, as the tree between workers does.
Graph add_graph(DType dtype, int64_t terms, int64_t numel) {
  Graph graph(all_ops(), "add_partial");
  Builder b(graph);
  std::vector<Value> sums;
  for (int64_t term = 0; term < terms; ++term)
    sums.push_back(graph.add_input(term_name(term), {dtype, {numel}}, Role::kGrad));
  Value total = sums.back();
  for (size_t term = sums.size() - 1; term > 0; --term) total = b.add(sums[term - 1], total);
  graph.add_update(sums[0], total);
  return graph;
}

Graph merge_graph(const RowTable& table, int64_t a, int64_t b_length) {
  Graph graph(all_ops(), "merge_rows");
  Builder b(graph);
  const auto list = [&](const char* name, int64_t length) {
    return std::pair{
        graph.add_input(std::string(name) + ".ids", {DType::kI32, {length}}, Role::kGrad),
        graph.add_input(std::string(name) + ".rows", {DType::kF32, {length, table.table[1]}}, Role::kGrad)};
  };
  const auto [a_ids, a_rows] = list("a", a);
  const auto [b_ids, b_rows] = list("b", b_length);
  const auto [out_ids, out_rows] = list("out", a + b_length);
  const auto merged = b.op_all("row_gradient", {b.concat({a_rows, b_rows}, 0), b.concat({a_ids, b_ids}, 0)},
                               {{"rows", table.table[0]}});
  graph.add_update(out_ids, merged[0]);
  graph.add_update(out_rows, merged[1]);
  return graph;
}

}  // namespace

GradientSlots::GradientSlots(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
                             int64_t count, const Allocate& allocate)
    : backend_(backend), layout_(layout), tables_(tables) {
  for (int64_t slot = 0; slot < count; ++slot)
    slots_.push_back({allocate(layout.sums_bytes()), make_lists()});
}

void* GradientSlots::at(int64_t slot, int64_t element) {
  return static_cast<char*>((*this)[slot].dense->data()) + layout_.sums_offset(element);
}

RowList GradientSlots::make_list(const RowTable& table, int64_t length) const {
  return {backend_.allocate(length * kId), backend_.allocate(length * table.table[1] * kFloat), length};
}

std::vector<RowList> GradientSlots::make_lists(int64_t microbatches) const {
  std::vector<RowList> lists;
  for (const RowTable& table : tables_) lists.push_back(make_list(table, table.ids * microbatches));
  return lists;
}

void GradientSlots::reset_lists(int64_t slot) {
  GradientSlot& target = (*this)[slot];
  for (size_t i = 0; i < tables_.size(); ++i)
    if (target.tables[i].length != tables_[i].ids) target.tables[i] = make_list(tables_[i], tables_[i].ids);
}

void GradientSlots::make_empty(std::vector<std::vector<RowList>>& lists) {
  for (auto& partial : lists)
    for (RowList& list : partial) {
      const std::vector<int32_t> none(static_cast<size_t>(list.length), -1);
      backend_.upload(list.ids->data(), none.data(), list.ids->bytes());
    }
}

RowList GradientSlots::merge(size_t table, RowList& a, RowList& b) {
  RowList out = make_list(tables_[table], a.length + b.length);
  Executable& executable = merger(table, a.length, b.length);
  executable.bind("a.ids", a.ids->data());
  executable.bind("a.rows", a.rows->data());
  executable.bind("b.ids", b.ids->data());
  executable.bind("b.rows", b.rows->data());
  executable.bind("out.ids", out.ids->data());
  executable.bind("out.rows", out.rows->data());
  executable.enqueue();
  return out;
}

// Lists grow through a step and are as long in the next: in the first step the arena grows with them, and
// those who hold a smaller one are made again when they are needed.
Executable& GradientSlots::merger(size_t table, int64_t a, int64_t b) {
  const std::pair key{table, std::pair{a, b}};
  if (const auto known = merges_.find(key); known != merges_.end()) return *known->second;
  Plan plan = make_plan(merge_graph(tables_[table], a, b), backend_);
  if (!merge_arena_ || merge_arena_->bytes() < plan.memory.arena_peak) {
    backend_.compute().synchronize();  // some may still have to run
    merges_.clear();
    merge_arena_.reset();
    merge_arena_ = backend_.allocate(plan.memory.arena_peak);
  }
  return *merges_.emplace(key, std::make_unique<Executable>(std::move(plan), backend_, merge_arena_))
              .first->second;
}

void GradientSlots::add_lists(int64_t into, std::vector<RowList>& lists) {
  GradientSlot& target = (*this)[into];
  for (size_t i = 0; i < lists.size(); ++i) target.tables[i] = merge(i, target.tables[i], lists[i]);
}

Executable& GradientSlots::adder(DType dtype, int64_t terms, int64_t count) {
  std::unique_ptr<Executable>& known = adders_[{dtype, terms, count}];
  if (!known) {
    PassOptions passes;
    passes.disabled = {"autodiff"};
    known = compile(add_graph(dtype, terms, count), backend_, passes);
  }
  return *known;
}

void GradientSlots::add_dense(int64_t first, int64_t last, Slice elements) {
  const int64_t statistics = layout_.dtype() == DType::kF32 ? elements.end : layout_.numel();
  add_some(first, last, {elements.begin, std::min(elements.end, statistics)});
  add_some(first, last, {std::max(elements.begin, statistics), elements.end});
}

// Of one type.
void GradientSlots::add_some(int64_t first, int64_t last, Slice elements) {
  if (elements.size() <= 0 || first == last) return;
  Executable& add = adder(layout_.sums_dtype(elements.begin), last - first + 1, elements.size());
  for (int64_t slot = first; slot <= last; ++slot)
    add.bind(term_name(slot - first), at(slot, elements.begin));
  add.enqueue();
}

int64_t GradientSlots::bytes() const {
  int64_t total = merge_arena_ ? merge_arena_->bytes() : 0;
  for (const GradientSlot& slot : slots_) {
    total += slot.dense->bytes();
    for (const RowList& list : slot.tables) total += list.ids->bytes() + list.rows->bytes();
  }
  return total;
}

}  // namespace lockstep

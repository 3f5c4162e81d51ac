#include "train/leaf_sums.h"

#include <chrono>

#include "base/error.h"

namespace lockstep {
namespace {

// Gradients that peers read in place.
class SharedMemory : public Buffer {
 public:
  SharedMemory(Group& group, int64_t bytes) : memory_(group.allocate(bytes)) {}
  void* data() override { return memory_.data(); }
  int64_t bytes() const override { return memory_.bytes(); }

 private:
  SharedBuffer memory_;
};

LeafRange own_leaves(int64_t leaves, const Group* group) {
  if (group == nullptr) return {0, leaves};
  LOCKSTEP_CHECK(group->split().leaves() == leaves, "a group over {} leaves for {}", group->split().leaves(),
                 leaves);
  return group->split().range(group->rank());
}

GradientSlots::Allocate allocator(Backend& backend, Group* group) {
  if (group == nullptr) return [&backend](int64_t bytes) { return backend.allocate(bytes); };
  return [group](int64_t bytes) { return std::make_unique<SharedMemory>(*group, bytes); };
}

}  // namespace

LeafSums::LeafSums(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
                   int64_t leaves, int64_t microbatches_per_leaf, Group* group)
    : backend_(backend),
      layout_(layout),
      leaves_(leaves),
      microbatches_per_leaf_(microbatches_per_leaf),
      group_(group),
      own_(own_leaves(leaves, group)),
      slots_(backend, layout, tables, stack_depth(own_, leaves), allocator(backend, group)),
      stack_(leaves),
      losses_(static_cast<size_t>(stack_depth(own_, leaves))),
      counts_(losses_.size()) {}

void LeafSums::add(float loss, int64_t count, bool first) {
  const auto at = static_cast<size_t>(slot());
  losses_[at] = first ? loss : losses_[at] + loss;
  counts_[at] = first ? count : counts_[at] + count;
}

void LeafSums::merge(int64_t into, int64_t from) {
  slots_.add(into, from);
  losses_[static_cast<size_t>(into)] += losses_[static_cast<size_t>(from)];
  counts_[static_cast<size_t>(into)] += counts_[static_cast<size_t>(from)];
}

void LeafSums::push() {
  const auto done = stack_.subtrees().empty() ? own_.begin : stack_.subtrees().back().end;
  stack_.push({done, done + 1}, [this](int64_t into, int64_t from) { merge(into, from); });
}

SumTotals LeafSums::finish() {
  if (group_ != nullptr) {
    const auto start = std::chrono::steady_clock::now();
    reduce();
    if (slots_.table_count() > 0) reduce_lists();
    comm_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  stack_.clear();
  return {losses_[0], counts_[0]};
}

void LeafSums::reduce() {
  std::vector<void*> sums, losses, counts;
  for (int64_t slot = 0; slot < stack_.next_slot(); ++slot) {
    sums.push_back(slots_[slot].dense->data());
    losses.push_back(&losses_[static_cast<size_t>(slot)]);
    counts.push_back(&counts_[static_cast<size_t>(slot)]);
  }
  if (layout_.sums_numel() > 0)
    group_->all_reduce(
        {.type = SumType::kF32, .count = layout_.sums_numel(), .partials = sums, .label = "gradients"});
  group_->all_reduce({.type = SumType::kF32, .count = 1, .partials = losses, .label = "loss"});
  group_->all_reduce({.type = SumType::kI64, .count = 1, .partials = counts, .label = "count"});
}

// The lists of every partial sum of a rank, per partial sum and table: its own, or received from it.
std::vector<std::vector<RowList>> LeafSums::exchange_lists(int rank) {
  const bool mine = rank == group_->rank();
  std::vector<std::vector<RowList>> lists;
  std::vector<std::byte> packed;
  const std::vector<LeafRange>& partials = group_->split().partials(rank);
  const auto for_each_buffer = [&](const auto& visit) {
    for (auto& partial : lists)
      for (RowList& list : partial)
        for (Buffer* buffer : {list.ids.get(), list.rows.get()}) visit(*buffer);
  };
  int64_t bytes = 0;
  for (size_t p = 0; p < partials.size(); ++p) {
    if (mine)
      lists.push_back(std::move(slots_[static_cast<int64_t>(p)].tables));
    else
      lists.push_back(slots_.make_lists(partials[p].size() * microbatches_per_leaf_));
  }
  for_each_buffer([&](Buffer& buffer) { bytes += buffer.bytes(); });
  packed.resize(static_cast<size_t>(bytes));
  int64_t at = 0;
  if (mine)
    for_each_buffer([&](Buffer& buffer) {
      backend_.download(packed.data() + at, buffer.data(), buffer.bytes());
      at += buffer.bytes();
    });
  group_->broadcast(packed, rank, "rows of tables");
  at = 0;
  if (!mine)
    for_each_buffer([&](Buffer& buffer) {
      backend_.upload(buffer.data(), packed.data() + at, buffer.bytes());
      at += buffer.bytes();
    });
  return lists;
}

void LeafSums::reduce_lists() {
  std::vector<std::vector<RowList>> stacked;
  LeafStack stack(leaves_);
  const auto merge_tables = [&](int64_t into, int64_t from) {
    for (int64_t table = 0; table < slots_.table_count(); ++table) {
      const auto t = static_cast<size_t>(table);
      RowList& left = stacked[static_cast<size_t>(into)][t];
      left = slots_.merge(t, left, stacked[static_cast<size_t>(from)][t]);
    }
    stacked.resize(static_cast<size_t>(from));
  };
  for (int rank = 0; rank < group_->size(); ++rank) {
    std::vector<std::vector<RowList>> lists = exchange_lists(rank);
    for (size_t p = 0; p < lists.size(); ++p) {
      stacked.push_back(std::move(lists[p]));
      stack.push(group_->split().partials(rank)[p], merge_tables);
    }
  }
  slots_[0].tables = std::move(stacked[0]);
  for (int64_t slot = 1; slot < stack_.next_slot(); ++slot) slots_[slot].tables = slots_.make_lists();
}

}  // namespace lockstep

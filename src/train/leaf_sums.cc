#include "train/leaf_sums.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "train/group_memory.h"

namespace lockstep {
namespace {

constexpr int64_t kFloat = sizeof(float);

GradientSlots::Allocate allocator(Backend& backend, Group* group) {
  if (group == nullptr) return [&backend](int64_t bytes) { return backend.allocate(bytes); };
  return [group](int64_t bytes) { return peer_memory(*group, bytes); };
}

}  // namespace

LeafSums::LeafSums(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
                   const SumTree& tree, const ReduceOptions& options, Group* group)
    : backend_(backend),
      layout_(layout),
      tree_(tree),
      options_(options),
      group_(group),
      slots_(backend, layout, tables, stack_depth(tree.own(), tree.leaves()), allocator(backend, group)),
      stack_(tree.leaves()),
      losses_(static_cast<size_t>(stack_depth(tree.own(), tree.leaves()))),
      counts_(losses_.size()) {
  const int64_t bytes = layout.sums_numel() * kFloat;
  if (group == nullptr) return;
  buckets_ = options.bucket_bytes > 0 || !options.exchange
                 ? fixed_buckets(options.bucket_bytes > 0 ? options.bucket_bytes : bytes, bytes)
                 : measure_buckets(*group, bytes, options.order);
}

void LeafSums::add(float loss, int64_t count, bool first) {
  const auto at = static_cast<size_t>(slot());
  losses_[at] = first ? loss : losses_[at] + loss;
  counts_[at].count = first ? count : counts_[at].count + count;
}

LeafRange LeafSums::next_leaf() const {
  const auto done = stack_.subtrees().empty() ? tree_.own().begin : stack_.subtrees().back().end;
  return {done, done + 1};
}

void LeafSums::ready(int64_t bytes) {
  const int64_t all = layout_.sums_numel();
  const int64_t bucket = buckets_.bytes / kFloat;
  while (merged_ < all) {
    const Slice next{merged_, std::min(merged_ + bucket, all)};
    if (next.end * kFloat > bytes) return;
    merge_bucket(next);
    merged_ = next.end;
    // The last one is not worth a hand-over: nothing is left to compute meanwhile.
    if (merged_ == all)
      last_bucket_ = next;
    else if (options_.exchange) {
      std::vector<void*> sums;
      tickets_.push_back(group_->start_all_reduce(reduction_of(next, sums)));
    }
  }
}

// What pushing the last leaf will merge, for the elements that are final already.
void LeafSums::merge_bucket(Slice bucket) {
  LeafStack after = stack_;
  after.push(next_leaf(), [](int64_t, int64_t) {});
  slots_.add_dense(after.next_slot() - 1, slot(), bucket);
}

Reduction LeafSums::reduction_of(Slice bucket, std::vector<void*>& sums) {
  const size_t partials = tree_.partials(group_->rank()).size();
  for (size_t slot = 0; slot < partials; ++slot)
    sums.push_back(static_cast<float*>(slots_[static_cast<int64_t>(slot)].dense->data()) + bucket.begin);
  return {.type = SumType::kF32,
          .count = bucket.size(),
          .partials = sums,
          .order = tree_.order(),
          .label = fmt::format("gradients, bucket {} of {}", bucket.begin * kFloat / buckets_.bytes + 1,
                               buckets_.count())};
}

void LeafSums::push() {
  const LeafRange leaf = next_leaf();
  const Slice rest{group_ != nullptr && completes(leaf) ? merged_ : 0, layout_.sums_numel()};
  const int64_t last = slot();
  stack_.push(leaf, [&](int64_t into, int64_t from) {
    slots_.add_lists(into, slots_[from].tables);
    losses_[static_cast<size_t>(into)] += losses_[static_cast<size_t>(from)];
    counts_[static_cast<size_t>(into)].count += counts_[static_cast<size_t>(from)].count;
  });
  slots_.add_dense(stack_.next_slot() - 1, last, rest);
}

SumTotals LeafSums::finish(int64_t request) {
  for (Counts& counts : counts_) counts.request = 0;
  counts_[0].request = request;
  if (group_ != nullptr) {
    const auto start = std::chrono::steady_clock::now();
    if (options_.exchange) reduce_rest();
    if (slots_.table_count() > 0) reduce_lists();
    comm_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  stack_.clear();
  merged_ = 0;
  return {losses_[0], counts_[0].count, counts_[0].request};
}

void LeafSums::reduce_rest() {
  LOCKSTEP_CHECK(merged_ == layout_.sums_numel(), "{} of {} gradients are ready", merged_,
                 layout_.sums_numel());
  std::vector<void*> sums, losses, counts;
  if (last_bucket_.size() > 0) group_->all_reduce(reduction_of(last_bucket_, sums));
  for (const Group::Ticket& ticket : tickets_) group_->wait(ticket);
  tickets_.clear();
  for (int64_t slot = 0; slot < stack_.next_slot(); ++slot) {
    losses.push_back(&losses_[static_cast<size_t>(slot)]);
    counts.push_back(&counts_[static_cast<size_t>(slot)]);
  }
  group_->all_reduce(
      {.type = SumType::kF32, .count = 1, .partials = losses, .order = tree_.order(), .label = "loss"});
  group_->all_reduce(
      {.type = SumType::kI64, .count = 2, .partials = counts, .order = tree_.order(), .label = "counts"});
}

// The lists of every partial sum of a rank, per partial sum and table: its own, or received from it.
std::vector<std::vector<RowList>> LeafSums::exchange_lists(int rank) {
  const bool mine = rank == group_->rank();
  std::vector<std::vector<RowList>> lists;
  std::vector<std::byte> packed;
  const std::vector<SumTree::Partial> partials = tree_.partials(rank);
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
      lists.push_back(slots_.make_lists(partials[p].microbatches));
  }
  if (!options_.exchange) {
    if (!mine) slots_.make_empty(lists);
    return lists;
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
  LeafStack stack(tree_.leaves());
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
      stack.push(tree_.partials(rank)[p].leaves, merge_tables);
    }
  }
  slots_[0].tables = std::move(stacked[0]);
  for (int64_t slot = 1; slot < stack_.next_slot(); ++slot) slots_[slot].tables = slots_.make_lists();
}

}  // namespace lockstep

#include "train/sums/leaf_sums.h"

#include <chrono>

#include "base/error.h"
#include "train/sums/row_exchange.h"

namespace lockstep {
namespace {

SumType sum_type(DType dtype) { return dtype == DType::kBF16 ? SumType::kBF16 : SumType::kF32; }

std::unique_ptr<Exchange> exchange_of(Backend& backend, const ReduceOptions& options, Group* group) {
  if (group == nullptr || !options.exchange) return nullptr;
  return make_direct_exchange(*group, backend, options.order);
}

GradientSlots::Allocate allocator(Backend& backend, Exchange* exchange) {
  if (exchange == nullptr) return [&backend](int64_t bytes) { return backend.allocate(bytes); };
  return [exchange](int64_t bytes) { return exchange->allocate(bytes); };
}

}  // namespace

LeafSums::LeafSums(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
                   const SumTree& tree, const ReduceOptions& options, Group* group)
    : layout_(layout),
      tree_(tree),
      group_(group),
      buckets_(group == nullptr ? Buckets() : Buckets(layout, options.bucket_bytes, options.owned)),
      owned_(options.owned),
      exchange_(exchange_of(backend, options, group)),
      slots_(backend, layout, tables, stack_depth(tree.own(), tree.leaves()),
             allocator(backend, exchange_.get())),
      totals_(backend, stack_depth(tree.own(), tree.leaves())),
      stack_(tree.leaves()) {}

LeafRange LeafSums::next_leaf(const LeafStack& stack) const {
  const auto done = stack.subtrees().empty() ? tree_.own().begin : stack.subtrees().back().end;
  return {done, done + 1};
}

void LeafSums::ready(int64_t bytes) {
  while (merged_ < buckets_.count() && layout_.sums_offset(buckets_[merged_].end) <= bytes) {
    merge_bucket(buckets_[merged_]);
    start_bucket(merged_++);
  }
}

// What pushing the last leaf will merge, for the elements that are final already.
void LeafSums::merge_bucket(Slice bucket) {
  LeafStack after = stack_;
  after.push(next_leaf(stack_), [](int64_t, int64_t) {});
  slots_.add_dense(after.next_slot() - 1, slot(), bucket);
}

void LeafSums::start_bucket(int64_t bucket) {
  const Slice elements = buckets_[bucket];
  std::vector<void*> partials;
  for (size_t slot = 0; slot < tree_.partials(group_->rank()).size(); ++slot)
    partials.push_back(slots_.at(static_cast<int64_t>(slot), elements.begin));
  exchange_->start(sum_type(layout_.sums_dtype(elements.begin)), partials, elements.size(),
                   owned_ && bucket < buckets_.gradient_count() ? SumFor::kOwners : SumFor::kAll,
                   fmt::format("gradients, bucket {} of {}", bucket + 1, buckets_.count()),
                   bucket + 1 == buckets_.count());
}

void LeafSums::push() {
  const LeafRange leaf = next_leaf(stack_);
  const bool exchanged = exchange_ != nullptr && completes(leaf);
  LOCKSTEP_CHECK(!exchanged || merged_ == buckets_.count(), "{} of {} buckets are ready", merged_,
                 buckets_.count());
  const int64_t last = slot();
  stack_.push(leaf, [&](int64_t into, int64_t from) {
    slots_.add_lists(into, slots_[from].tables);
    totals_.merge(into, from);
  });
  if (!exchanged) slots_.add_dense(stack_.next_slot() - 1, last, {0, layout_.sums_numel()});
}

void LeafSums::in_parts(std::vector<Slice> parts, int loss) {
  LOCKSTEP_CHECK(slots_.table_count() == 0, "tables in {} parts", parts.size());
  parts_ = std::move(parts);
  part_stacks_.assign(parts_.size(), LeafStack(tree_.leaves()));
  loss_part_ = loss;
  // Norms and updates run over the padding between parameters, which nobody writes.
  for (int64_t slot = 0; slot < stack_depth(tree_.own(), tree_.leaves()); ++slot)
    slots_.backend().compute().zero(slots_.at(slot, 0), layout_.sums_bytes());
}

void LeafSums::push(size_t part) {
  LeafStack& stack = part_stacks_[part];
  const int64_t last = stack.next_slot();
  stack.push(next_leaf(stack), [&](int64_t into, int64_t from) {
    if (static_cast<int>(part) == loss_part_) totals_.merge(into, from);
  });
  if (parts_[part].size() > 0) slots_.add_dense(stack.next_slot() - 1, last, parts_[part]);
}

void LeafSums::exchange_parts() {
  stack_ = part_stacks_[0];
  for (LeafStack& stack : part_stacks_) stack.clear();
  if (loss_part_ < 0)
    for (int64_t slot = 0; slot < stack_.next_slot(); ++slot) totals_.write(slot, {});
  if (!exchange_) return;
  for (; merged_ < buckets_.count(); ++merged_) start_bucket(merged_);
}

int64_t LeafSums::finish(int64_t request) {
  if (group_ != nullptr) {
    const auto start = std::chrono::steady_clock::now();
    if (exchange_) {
      exchange_->finish();
      request = exchange_totals(request);
    }
    if (slots_.table_count() > 0)
      exchange_rows(*group_, tree_, slots_, stack_.next_slot(), exchange_ != nullptr);
    comm_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  stack_.clear();
  merged_ = 0;
  return request;
}

// Counts and requests are whole numbers, whose sum has no order.
int64_t LeafSums::exchange_totals(int64_t request) {
  struct Counts {
    int64_t count = 0;
    int64_t request = 0;
  };
  const auto slots = static_cast<size_t>(stack_.next_slot());
  std::vector<float> losses(slots);
  std::vector<Counts> counts(slots);
  std::vector<void*> loss_partials, count_partials;
  for (size_t slot = 0; slot < slots; ++slot) {
    const LossTotal own = totals_.read(static_cast<int64_t>(slot));
    losses[slot] = own.loss;
    counts[slot] = {own.count, slot == 0 ? request : 0};
    loss_partials.push_back(&losses[slot]);
    count_partials.push_back(&counts[slot]);
  }
  exchange_->sum(SumType::kF32, 1, loss_partials, "loss");
  exchange_->sum(SumType::kI64, 2, count_partials, "counts");
  totals_.write(0, {losses[0], counts[0].count});
  return counts[0].request;
}

}  // namespace lockstep

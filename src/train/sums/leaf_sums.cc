#include "train/sums/leaf_sums.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "train/sums/row_exchange.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

SumType sum_type(DType dtype) { return dtype == DType::kBF16 ? SumType::kBF16 : SumType::kF32; }

std::unique_ptr<Exchange> exchange_of(Backend& backend, const ReduceOptions& options, Group* group,
                                      const DeviceReach* reach) {
  if (group == nullptr || !options.exchange) return nullptr;
  return make_direct_exchange(*group, backend, options.order, reach);
}

std::unique_ptr<NodeCodec> codec_of(Backend& backend, const ReduceOptions& options) {
  if (!NodeCodec::covers(options.codec)) return nullptr;
  LOCKSTEP_CHECK(backend.memory() == MemoryKind::kHost, "gradients are compressed in memory of the host");
  return std::make_unique<NodeCodec>(options.codec, backend.host_threads());
}

GradientSlots::Allocate allocator(Backend& backend, Exchange* exchange) {
  if (exchange == nullptr) return [&backend](int64_t bytes) { return backend.allocate(bytes); };
  return [exchange](int64_t bytes) { return exchange->allocate(bytes); };
}

}  // namespace

LeafSums::LeafSums(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
                   const SumTree& tree, const ReduceOptions& options, Group* group, const DeviceReach* reach,
                   float* residuals)
    : layout_(layout),
      tree_(tree),
      group_(group),
      buckets_(group == nullptr
                   ? Buckets()
                   : Buckets(layout, options.bucket_bytes,
                             options.owned || options.codec != GradientCodec::kNone, options.least_bucket)),
      owned_(options.owned),
      exchange_(exchange_of(backend, options, group, reach)),
      codec_(codec_of(backend, options)),
      warmup_(options.warmup),
      slots_(backend, layout, tables, stack_depth(tree.own(), tree.leaves()),
             allocator(backend, exchange_.get())),
      totals_(backend, stack_depth(tree.own(), tree.leaves())),
      stack_(tree.leaves()) {
  LOCKSTEP_CHECK(options.codec != GradientCodec::kAuto, "the codec has not been settled");
  if (exchange_) profile_ = CommProfile(buckets_.count());
  if (codec_ && exchange_)
    coded_ = std::make_unique<CodedExchange>(*group, *codec_,
                                             static_cast<int64_t>(tree.partials(group->rank()).size()),
                                             buckets_.bytes() / size_of(DType::kF32));
  if (has_feedback(options.codec)) make_residuals(backend, options, residuals);
}

void LeafSums::make_residuals(Backend& backend, const ReduceOptions& options, float* memory) {
  LOCKSTEP_CHECK(
      memory != nullptr && backend.memory() == MemoryKind::kHost && (group_ == nullptr || exchange_),
      "{} keeps what is not sent in memory of the host", name_of(options.codec));
  residuals_ = std::make_unique<LeafResiduals>(memory, tree_.own(), layout_.numel(), backend.host_threads());
  const int64_t bucket = group_ == nullptr ? layout_.numel() : buckets_.bytes() / size_of(DType::kF32);
  feedback_ = make_feedback_sums(options, layout_, *residuals_, tree_.leaves(), group_, bucket);
}

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
  merge(next_leaf(stack_).begin, after.next_slot() - 1, slot(), bucket);
}

void LeafSums::merge(int64_t leaf, int64_t first, int64_t last, Slice elements) {
  if (!codec_ && !leaves_out_) return slots_.add_dense(first, last, elements);
  const Slice gradients{elements.begin, std::min(elements.end, layout_.numel())};
  if (gradients.size() > 0 && leaves_out_) {
    residuals_->add(leaf, static_cast<const float*>(slots_.at(last, gradients.begin)), gradients);
  } else if (gradients.size() > 0) {
    std::vector<float*> terms;
    for (int64_t slot = first; slot <= last; ++slot)
      terms.push_back(static_cast<float*>(slots_.at(slot, gradients.begin)));
    codec_->merge(terms, gradients.size());
  }
  slots_.add_dense(first, last, {std::max(elements.begin, layout_.numel()), elements.end});
}

void LeafSums::start_bucket(int64_t bucket) {
  const Slice elements = buckets_[bucket];
  std::vector<void*> partials;
  for (size_t slot = 0; slot < tree_.partials(group_->rank()).size(); ++slot)
    partials.push_back(slots_.at(static_cast<int64_t>(slot), elements.begin));
  const bool gradients = bucket < buckets_.gradient_count();
  const bool last = bucket + 1 == buckets_.count();
  const BucketTransfer transfer{
      .count = elements.size(),
      .whom = owned_ && gradients ? SumFor::kOwners : SumFor::kAll,
      .label = fmt::format("gradients, bucket {} of {}", bucket + 1, buckets_.count()),
      .last = last,
      .began = [this, bucket] { profile_.began(bucket); },
      .ended = [this, bucket] { profile_.ended(bucket); }};
  profile_.handed_over(bucket);
  if (last) wait_for_buckets();
  const auto start = Clock::now();
  Group::Ticket ticket;
  if (leaves_out_ && gradients) {
    ticket = feedback_->start(elements, static_cast<float*>(slots_.at(0, elements.begin)), transfer);
  } else if (coded_ && gradients) {
    std::vector<float*> sums;
    for (void* partial : partials) sums.push_back(static_cast<float*>(partial));
    ticket = coded_->start(std::move(sums), transfer);
  } else {
    ticket = exchange_->start(sum_type(layout_.sums_dtype(elements.begin)), partials, transfer);
  }
  if (ticket) return under_way_.push_back({bucket, std::move(ticket)});
  const double seconds = seconds_since(start);
  profile_.waited(bucket, seconds);
  comm_seconds_ += seconds;
}

void LeafSums::wait_for_buckets() {
  for (const UnderWay& one : under_way_) {
    const auto start = Clock::now();
    group_->wait(one.ticket);
    const double seconds = seconds_since(start);
    profile_.waited(one.bucket, seconds);
    comm_seconds_ += seconds;
  }
  under_way_.clear();
}

void LeafSums::finish_feedback() {
  if (!leaves_out_) return;
  const auto start = Clock::now();
  feedback_->finish();
  const double seconds = seconds_since(start);
  profile_.waited(buckets_.count() - 1, seconds);
  comm_seconds_ += seconds;
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
  if (!exchanged) merge(leaf.begin, stack_.next_slot() - 1, last, {0, layout_.sums_numel()});
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
  const LeafRange leaf = next_leaf(stack);
  stack.push(leaf, [&](int64_t into, int64_t from) {
    if (static_cast<int>(part) == loss_part_) totals_.merge(into, from);
  });
  if (parts_[part].size() > 0) merge(leaf.begin, stack.next_slot() - 1, last, parts_[part]);
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
  if (leaves_out_ && group_ == nullptr) {
    feedback_->start({0, layout_.numel()}, static_cast<float*>(slots_.at(0, 0)), {});
    feedback_->finish();
  }
  if (group_ != nullptr) {
    if (exchange_) {
      wait_for_buckets();
      finish_feedback();
      profile_.end_step();
    }
    const auto start = Clock::now();
    if (exchange_) {
      request = exchange_totals(request);
      profile_.small(seconds_since(start) / 2);  // of the loss and of the counts
    }
    if (slots_.table_count() > 0)
      exchange_rows(*group_, tree_, slots_, stack_.next_slot(), exchange_ != nullptr);
    comm_seconds_ += seconds_since(start);
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

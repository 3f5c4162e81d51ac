#include "train/pipeline/pipeline_schedule.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"

namespace lockstep {
namespace {

// Counts the forwards and backwards of a rank and says which stage and microbatch each is of.
class Order {
 public:
  Order(const PipelineShape& shape, int rank) : shape_(shape), rank_(rank) {
    // Interleaved, microbatches go through a rank's stages in rounds of about p.
    int64_t rounds = std::max<int64_t>(1, shape.microbatches / shape.ranks);
    while (shape.microbatches % rounds != 0) --rounds;
    per_round_ = shape.microbatches / rounds;
  }

  int64_t per_round() const { return per_round_; }
  void forward() { add(ActionKind::kForward, chunk_of(forwards_++)); }
  void backward(ActionKind kind) { add(kind, shape_.chunks - 1 - chunk_of(backwards_++)); }
  // The oldest backward whose weights are still to be done.
  void weights() {
    const PipelineAction& of = pending_.at(done_weights_++);
    actions_.push_back({ActionKind::kWeightGradients, of.stage, of.microbatch});
  }
  int64_t left_weights() const { return static_cast<int64_t>(pending_.size() - done_weights_); }
  std::vector<PipelineAction> take() { return std::move(actions_); }

 private:
  int chunk_of(int64_t index) const { return static_cast<int>(index / per_round_ % shape_.chunks); }
  void add(ActionKind kind, int chunk) {
    const int stage = chunk * shape_.ranks + rank_;
    const PipelineAction action{kind, stage, next_[{kind, stage}]++};
    actions_.push_back(action);
    if (kind == ActionKind::kInputGradients) pending_.push_back(action);
  }

  PipelineShape shape_;
  int rank_;
  int64_t per_round_ = 1;
  int64_t forwards_ = 0, backwards_ = 0;
  size_t done_weights_ = 0;
  std::map<std::pair<ActionKind, int>, int64_t> next_;
  std::vector<PipelineAction> actions_, pending_;
};

}  // namespace

std::vector<PipelineAction> pipeline_actions(const PipelineShape& shape, int rank) {
  const int64_t p = shape.ranks, v = shape.chunks, total = shape.microbatches * v;
  Order order(shape, rank);
  const bool zero_bubble = shape.schedule == PipelineSchedule::kZeroBubble;
  int64_t warm_up = p - 1 - rank;
  if (shape.schedule == PipelineSchedule::kGpipe) warm_up = total;
  if (shape.schedule == PipelineSchedule::kInterleaved && v > 1)
    warm_up = (v - 1) * order.per_round() + 2 * (p - 1 - rank);
  warm_up = std::min(warm_up, total);
  const ActionKind kind = zero_bubble ? ActionKind::kInputGradients : ActionKind::kBackward;
  for (int64_t i = 0; i < warm_up; ++i) order.forward();
  for (int64_t i = 0; i < total; ++i) {
    if (i < total - warm_up) order.forward();
    order.backward(kind);
    if (zero_bubble && i >= rank) order.weights();
  }
  while (order.left_weights() > 0) order.weights();
  return order.take();
}

int64_t most_in_flight(const std::vector<PipelineAction>& actions, int stage) {
  int64_t now = 0, most = 0;
  const bool apart = std::ranges::any_of(
      actions, [](const PipelineAction& one) { return one.kind == ActionKind::kWeightGradients; });
  for (const PipelineAction& action : actions) {
    if (action.stage != stage) continue;
    if (action.kind == ActionKind::kForward) most = std::max(most, ++now);
    if (action.kind == (apart ? ActionKind::kWeightGradients : ActionKind::kBackward)) --now;
  }
  return most;
}

namespace {

// The ranks of a pipeline at work, one unit of time after another.
class Simulation {
 public:
  Simulation(const PipelineShape& shape, const std::vector<int64_t>& slots) : shape_(shape), slots_(slots) {
    for (int rank = 0; rank < shape.ranks; ++rank) {
      ranks_.push_back({pipeline_actions(shape, rank), 0, 0, {}});
      for (const PipelineAction& action : ranks_.back().actions)
        apart_ |= action.kind == ActionKind::kWeightGradients;
    }
    for (int from = 0; from < shape.ranks; ++from)
      for (int to = 0; to < shape.ranks; ++to) messages_.push_back(messages(from, to));
    done_.resize(number(ActionKind::kWeightGradients, shape.stages(), 0));
  }

  // Whether all got to their end.
  bool run() {
    for (int64_t now = 0; !is_over(); ++now) {
      bool busy = false, begun = false;
      // What ends now is seen by all who begin now.
      for (Rank& rank : ranks_) {
        if (rank.until == now && rank.runs) complete(rank);
        busy |= rank.runs;
      }
      for (Rank& rank : ranks_) {
        if (!rank.runs && rank.next < rank.actions.size() && may_begin(rank.actions[rank.next])) {
          rank.runs = true;
          begun = true;
          rank.until = now + length(rank.actions[rank.next].kind);
        }
        rank.line += rank.runs ? cell(rank, now) : ".";
      }
      if (!busy && !begun && !is_over()) return false;
    }
    return true;
  }

  std::string lines() const {
    std::string text;
    for (const Rank& rank : ranks_) text += rank.line.substr(0, rank.line.find_last_not_of('.') + 1) + "\n";
    return text;
  }

 private:
  struct Rank {
    std::vector<PipelineAction> actions;
    size_t next = 0;
    int64_t until = 0;
    std::string line;
    bool runs = false;
  };
  static int64_t length(ActionKind kind) { return kind == ActionKind::kBackward ? 2 : 1; }
  bool is_over() const {
    return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.next == rank.actions.size(); });
  }
  ActionKind backward() const { return apart_ ? ActionKind::kInputGradients : ActionKind::kBackward; }
  size_t number(ActionKind kind, int stage, int64_t microbatch) const {
    const int64_t row = static_cast<int64_t>(kind) * shape_.stages() + stage;
    return static_cast<size_t>(row * shape_.microbatches + microbatch);
  }
  bool is_done(ActionKind kind, int stage, int64_t microbatch) const {
    return done_[number(kind, stage, microbatch)];
  }

  // A slot is free when the microbatch that had it before is through.
  bool has_slot(int stage, int64_t microbatch) const {
    const int64_t before = microbatch - slots_[static_cast<size_t>(stage)];
    return before < 0 ||
           is_done(apart_ ? ActionKind::kWeightGradients : ActionKind::kBackward, stage, before);
  }

  struct Message {
    ActionKind kind;
    int to_stage;
    int64_t microbatch;
  };
  // All that a rank sends to another, in its order.
  std::vector<Message> messages(int from, int to) const {
    std::vector<Message> all;
    for (const PipelineAction& action : ranks_[static_cast<size_t>(from)].actions) {
      if (action.kind == ActionKind::kWeightGradients) continue;
      const int next = action.kind == ActionKind::kForward ? action.stage + 1 : action.stage - 1;
      if (next >= 0 && next < shape_.stages() && shape_.rank_of(next) == to)
        all.push_back({action.kind, next, action.microbatch});
    }
    return all;
  }

  // Receives are posted in the order of the sender, each into a slot that is free; one that is needed now can
  // only come when all before it are posted.
  bool is_received(int from, int to, const Message& wanted) const {
    if (from == to) return true;
    for (const Message& message : messages_[static_cast<size_t>(from * shape_.ranks + to)]) {
      const bool is_posted = has_slot(message.to_stage, message.microbatch);
      if (!is_posted) return false;
      if (message.kind == wanted.kind && message.to_stage == wanted.to_stage &&
          message.microbatch == wanted.microbatch)
        return true;
    }
    return false;
  }

  bool may_begin(const PipelineAction& action) const {
    const int rank = shape_.rank_of(action.stage);
    switch (action.kind) {
      case ActionKind::kForward:
        if (!has_slot(action.stage, action.microbatch)) return false;
        return action.stage == 0 || (is_done(ActionKind::kForward, action.stage - 1, action.microbatch) &&
                                     is_received(shape_.rank_of(action.stage - 1), rank,
                                                 {ActionKind::kForward, action.stage, action.microbatch}));
      case ActionKind::kBackward:
      case ActionKind::kInputGradients:
        if (!is_done(ActionKind::kForward, action.stage, action.microbatch)) return false;
        return action.stage + 1 == shape_.stages() ||
               (is_done(backward(), action.stage + 1, action.microbatch) &&
                is_received(shape_.rank_of(action.stage + 1), rank,
                            {backward(), action.stage, action.microbatch}));
      case ActionKind::kWeightGradients: break;
    }
    return is_done(ActionKind::kInputGradients, action.stage, action.microbatch);
  }

  void complete(Rank& rank) {
    const PipelineAction& action = rank.actions[rank.next++];
    done_[number(action.kind, action.stage, action.microbatch)] = true;
    rank.runs = false;
  }

  static std::string cell(const Rank& rank, int64_t now) {
    const PipelineAction& action = rank.actions[rank.next];
    if (action.kind == ActionKind::kBackward && rank.until - now == 1) return "b";
    return std::string(1, "FBIW"[static_cast<size_t>(action.kind)]);
  }

  PipelineShape shape_;
  std::vector<int64_t> slots_;
  bool apart_ = false;
  std::vector<Rank> ranks_;
  std::vector<std::vector<Message>> messages_;  // by sender and receiver
  std::vector<bool> done_;                      // by number
};

}  // namespace

std::string timeline(const PipelineShape& shape, const std::vector<int64_t>& slots) {
  Simulation simulation(shape, slots);
  if (!simulation.run())
    throw InternalError("schedule {} of {} ranks and {} microbatches stands still:\n{}",
                        name_of(shape.schedule), shape.ranks, shape.microbatches, simulation.lines());
  return simulation.lines();
}

std::vector<int64_t> slots_of_stages(const PipelineShape& shape) {
  std::vector<int64_t> slots;
  for (int stage = 0; stage < shape.stages(); ++stage)
    slots.push_back(most_in_flight(pipeline_actions(shape, shape.rank_of(stage)), stage));
  // One more each lets the next microbatch arrive while the oldest is finished.
  const auto more = [&] {
    for (int64_t& one : slots) one = std::min(one + 1, shape.microbatches);
  };
  more();
  while (!Simulation(shape, slots).run()) more();
  return slots;
}

}  // namespace lockstep

#include "passes/list_scheduler.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "graph/op_def.h"
#include "passes/live_bytes.h"
#include "passes/recompute.h"

namespace lockstep {
namespace {

bool ends_collective(const Node& node) { return node.op->is_done(); }
bool starts_collective(const Node& node) { return node.op->traits.collective && !ends_collective(node); }

bool is_lazy(const Graph& graph, const Node& node) {
  if (starts_collective(node)) return false;
  return node.op->traits.view || node.inputs.empty() || ends_collective(node) || is_recomputed(graph, node);
}

}  // namespace

ListScheduler::ListScheduler(const Graph& graph) : graph_(graph), buffers_(view_origins(graph)) {
  std::map<std::string, int32_t> last_done;  // per group
  for (const Node& n : graph.nodes()) {
    lazy_.push_back(is_lazy(graph, n));
    previous_done_.push_back(-1);
    if (!ends_collective(n)) continue;
    const Node& start = node(graph.producer(n.inputs[0]));
    const auto [last, is_first] = last_done.try_emplace(start.attributes.text("group"), -1);
    previous_done_.back() = last->second;
    last->second = static_cast<int32_t>(lazy_.size()) - 1;
  }
  find_dependencies();
  is_pulled_.assign(lazy_.size(), false);
}

// A node waits for the nodes that are not lazy among those it reads, directly or through lazy ones.
void ListScheduler::find_dependencies() {
  const size_t count = graph_.nodes().size();
  std::vector<std::vector<int32_t>> needs(count);  // sorted
  int32_t last_collective = -1;
  dependents_.assign(count, {});
  needs_.assign(count, 0);
  for (int32_t n = 0; n < static_cast<int32_t>(count); ++n) {
    std::vector<int32_t>& mine = needs[static_cast<size_t>(n)];
    for (const Value input : node(n).inputs) {
      const int32_t producer = graph_.producer(input);
      if (producer < 0) continue;
      if (lazy_[static_cast<size_t>(producer)])
        mine.insert(mine.end(), needs[static_cast<size_t>(producer)].begin(),
                    needs[static_cast<size_t>(producer)].end());
      else
        mine.push_back(producer);
    }
    if (starts_collective(node(n))) {
      if (last_collective >= 0) mine.push_back(last_collective);
      last_collective = n;
    }
    std::ranges::sort(mine);
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    if (lazy_[static_cast<size_t>(n)]) continue;
    needs_[static_cast<size_t>(n)] = static_cast<int32_t>(mine.size());
    for (const int32_t other : mine) dependents_[static_cast<size_t>(other)].push_back(n);
  }
}

std::vector<int32_t> ListScheduler::order(ScheduleRule rule) {
  const size_t count = graph_.nodes().size();
  waits_for_ = needs_;
  done_.assign(count, false);
  readers_left_.assign(buffers_.size(), 0);
  external_.assign(buffers_.size(), false);
  order_.clear();
  ready_.clear();
  for (const Node& n : graph_.nodes())
    for (const Value input : n.inputs) ++readers_left_[buffer(input)];
  for (const GraphOutput& output : graph_.outputs()) {
    ++readers_left_[buffer(output.value)];
    if (output.target.valid()) external_[buffer(output.value)] = true;
  }
  for (const GraphInput& input : graph_.inputs()) external_[buffer(input.value)] = true;
  for (int32_t n = 0; n < static_cast<int32_t>(count); ++n)
    if (!lazy_[static_cast<size_t>(n)] && waits_for_[static_cast<size_t>(n)] == 0) ready_.push_back(n);

  while (!ready_.empty()) run(choose(rule));
  // Lazy nodes that only the graph's outputs read.
  for (int32_t n = 0; n < static_cast<int32_t>(count); ++n)
    if (!done_[static_cast<size_t>(n)]) execute(n);
  LOCKSTEP_CHECK(order_.size() == count, "{} of {} nodes were ordered", order_.size(), count);
  return order_;
}

const std::vector<int32_t>& ListScheduler::pulled(int32_t n) {
  pulled_.clear();
  const auto pull = [&](int32_t other) {
    if (other < 0 || done_[static_cast<size_t>(other)] || is_pulled_[static_cast<size_t>(other)]) return;
    is_pulled_[static_cast<size_t>(other)] = true;
    pulled_.push_back(other);
  };
  pull(n);
  for (size_t i = 0; i < pulled_.size(); ++i) {
    for (const Value input : node(pulled_[i]).inputs) pull(graph_.producer(input));
    // The transfers of a group end in the order in which they began.
    pull(previous_done_[static_cast<size_t>(pulled_[i])]);
  }
  for (const int32_t m : pulled_) is_pulled_[static_cast<size_t>(m)] = false;
  std::ranges::sort(pulled_);
  return pulled_;
}

int64_t ListScheduler::growth(int32_t n) {
  const std::vector<int32_t>& nodes = pulled(n);
  int64_t taken = 0;
  int64_t freed = 0;
  const auto bytes = [&](size_t id) { return graph_.type(Value{static_cast<int32_t>(id)}).bytes(); };
  for (const int32_t m : nodes) {
    if (!node(m).op->traits.view)
      for (const Value output : node(m).outputs)
        if (!external_[buffer(output)] && readers_left_[buffer(output)] > 0) taken += bytes(buffer(output));
    for (const Value input : node(m).inputs)
      if (--readers_left_[buffer(input)] == 0 && !external_[buffer(input)]) freed += bytes(buffer(input));
  }
  for (const int32_t m : nodes)
    for (const Value input : node(m).inputs) ++readers_left_[buffer(input)];
  return taken - freed;
}

bool ListScheduler::waits(int32_t n) {
  const std::vector<int32_t>& nodes = pulled(n);
  return std::any_of(nodes.begin(), nodes.end(), [&](int32_t m) { return ends_collective(node(m)); });
}

int32_t ListScheduler::choose(ScheduleRule rule) {
  for (const int32_t n : ready_)
    if (starts_collective(node(n))) return n;
  int32_t best = ready_.front();
  int64_t least = 0;
  bool found = false;
  for (const int32_t n : ready_) {
    const int64_t change = growth(n);
    // What would wait for a transfer keeps its place, however many bytes it frees.
    if (rule == ScheduleRule::kEager && (change > 0 || waits(n))) continue;
    if (!found || change < least) {
      best = n;
      least = change;
      found = true;
    }
  }
  return best;
}

void ListScheduler::execute(int32_t n) {
  done_[static_cast<size_t>(n)] = true;
  order_.push_back(n);
  for (const Value input : node(n).inputs) --readers_left_[buffer(input)];
}

void ListScheduler::run(int32_t n) {
  for (const int32_t m : pulled(n)) execute(m);
  ready_.erase(std::find(ready_.begin(), ready_.end(), n));
  for (const int32_t dependent : dependents_[static_cast<size_t>(n)])
    if (--waits_for_[static_cast<size_t>(dependent)] == 0)
      ready_.insert(std::lower_bound(ready_.begin(), ready_.end(), dependent), dependent);
}

}  // namespace lockstep

#include "comm/leaf_split.h"

#include <limits>

#include "base/error.h"
#include "comm/leaf_stack.h"

namespace lockstep {
namespace {

std::vector<LeafRange> maximal_subtrees(LeafRange range, int64_t leaves) {
  LeafStack stack(leaves);
  for (int64_t leaf = range.begin; leaf < range.end; ++leaf)
    stack.push({leaf, leaf + 1}, [](int64_t, int64_t) {});
  return {stack.subtrees().begin(), stack.subtrees().end()};
}

// Costs of every range that a rank could own.
class RangeCosts {
 public:
  RangeCosts(int64_t leaves, double partial_cost) : leaves_(leaves), partial_cost_(partial_cost) {
    counts_.resize(static_cast<size_t>((leaves + 1) * (leaves + 1)));
    for (int64_t begin = 0; begin < leaves; ++begin) {
      LeafStack stack(leaves);
      for (int64_t end = begin + 1; end <= leaves; ++end) {
        stack.push({end - 1, end}, [](int64_t, int64_t) {});
        counts_[static_cast<size_t>(begin * (leaves + 1) + end)] = stack.next_slot();
      }
    }
  }
  int64_t partials(int64_t begin, int64_t end) const {
    return counts_[static_cast<size_t>(begin * (leaves_ + 1) + end)];
  }
  double work(int64_t begin, int64_t end) const {
    return static_cast<double>(end - begin) + partial_cost_ * static_cast<double>(partials(begin, end) - 1);
  }

 private:
  int64_t leaves_;
  double partial_cost_;
  std::vector<int64_t> counts_;
};

constexpr double kNever = std::numeric_limits<double>::infinity();

// Cuts [0, leaves) into `ranks` ranges. cost(begin, end) is kNever for a range that is not allowed; `join`
// folds the cost of one more range into that of those before it. Returns the least cost and the ends.
template <typename Cost, typename Join>
std::pair<double, std::vector<int64_t>> cut(int64_t leaves, int ranks, const Cost& cost, const Join& join) {
  const auto width = static_cast<size_t>(leaves) + 1;
  std::vector<std::vector<double>> best(static_cast<size_t>(ranks) + 1, std::vector<double>(width, kNever));
  std::vector<std::vector<int64_t>> from(static_cast<size_t>(ranks) + 1, std::vector<int64_t>(width, 0));
  best[0][0] = 0;
  for (size_t rank = 1; rank < best.size(); ++rank)
    for (int64_t end = static_cast<int64_t>(rank); end <= leaves; ++end)
      for (int64_t begin = static_cast<int64_t>(rank) - 1; begin < end; ++begin) {
        const double before = best[rank - 1][static_cast<size_t>(begin)];
        if (before == kNever) continue;
        const double total = join(before, cost(begin, end));
        if (total >= best[rank][static_cast<size_t>(end)]) continue;
        best[rank][static_cast<size_t>(end)] = total;
        from[rank][static_cast<size_t>(end)] = begin;
      }
  std::vector<int64_t> ends(static_cast<size_t>(ranks));
  int64_t end = leaves;
  for (auto rank = static_cast<size_t>(ranks); rank > 0; --rank) {
    ends[rank - 1] = end;
    end = from[rank][static_cast<size_t>(end)];
  }
  return {best.back().back(), ends};
}

}  // namespace

LeafSplit::LeafSplit(int64_t leaves, const std::vector<int64_t>& ends) : leaves_(leaves) {
  int64_t begin = 0;
  for (const int64_t end : ends) {
    LOCKSTEP_CHECK(end > begin && end <= leaves, "leaves {} to {} of {}", begin, end, leaves);
    ranges_.push_back({begin, end});
    partials_.push_back(maximal_subtrees(ranges_.back(), leaves));
    begin = end;
  }
  LOCKSTEP_CHECK(begin == leaves, "{} of {} leaves are owned", begin, leaves);
}

LeafSplit LeafSplit::one_each(int ranks) {
  std::vector<int64_t> ends;
  for (int rank = 1; rank <= ranks; ++rank) ends.push_back(rank);
  return {ranks, ends};
}

LeafSplit LeafSplit::search(int64_t leaves, int ranks, double partial_cost) {
  if (ranks > leaves)
    throw UserError("{} workers cannot share {} leaves; set strategy.leaves to {} or use at most {} workers",
                    ranks, leaves, std::bit_ceil(static_cast<uint64_t>(ranks)), leaves);
  const RangeCosts costs(leaves, partial_cost);
  const double slowest =
      cut(
          leaves, ranks, [&](int64_t begin, int64_t end) { return costs.work(begin, end); },
          [](double before, double one) { return std::max(before, one); })
          .first;
  const auto fewest = [&](int64_t begin, int64_t end) {
    return costs.work(begin, end) > slowest ? kNever : static_cast<double>(costs.partials(begin, end));
  };
  return {leaves, cut(leaves, ranks, fewest, [](double before, double one) { return before + one; }).second};
}

int64_t LeafSplit::max_partials() const {
  size_t most = 0;
  for (const auto& partials : partials_) most = std::max(most, partials.size());
  return static_cast<int64_t>(most);
}

int64_t LeafSplit::total_partials() const {
  size_t total = 0;
  for (const auto& partials : partials_) total += partials.size();
  return static_cast<int64_t>(total);
}

double LeafSplit::imbalance() const {
  int64_t most = 0;
  for (const LeafRange& range : ranges_) most = std::max(most, range.size());
  return static_cast<double>(most * ranks()) / static_cast<double>(leaves_);
}

std::string LeafSplit::text() const {
  std::string sizes;
  std::string partials;
  for (int rank = 0; rank < ranks(); ++rank) {
    sizes += fmt::format(" {}", range(rank).size());
    partials += fmt::format(" {}", this->partials(rank).size());
  }
  return fmt::format("{} leaves on {} ranks:{}, partial sums{}", leaves_, ranks(), sizes, partials);
}

}  // namespace lockstep

// FieldSurvey: which columns a shard without a schema has, by its first records: the names in the order in
// which they appear, what kinds of values they hold, and how many in a record.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/format/column_block.h"

namespace lockstep {

class FieldSurvey {
 public:
  // As many records as tell the roles of a table's columns, so that what was seen here holds there.
  static constexpr int64_t kRecords = 10000;

  struct Seen {
    std::string name;
    bool whole = false, real = false, text = false, truth = false;
    bool beyond_double = false;  // a whole number that f64 cannot hold
    bool beyond_whole = false;   // one that i64 cannot hold either; it counts as real
    bool list = false;           // several values in a record are possible
    int64_t fewest = -1, most = -1;
  };

  static bool is_beyond_double(int64_t whole) {
    constexpr int64_t kExact = int64_t{1} << 53;
    return whole > kExact || whole < -kExact;
  }

  Seen& seen(std::string_view name) {
    // Records mostly have their members in one order.
    if (next_ >= all_.size()) next_ = 0;
    if (next_ < all_.size() && all_[next_].name == name) return all_[next_++];
    const auto [at, added] = by_name_.try_emplace(std::string(name), all_.size());
    if (added) all_.push_back({.name = std::string(name)});
    next_ = at->second + 1;
    return all_[at->second];
  }
  // A record has this many values of it.
  static void count(Seen& seen, int64_t values) {
    seen.fewest = seen.fewest < 0 ? values : std::min(seen.fewest, values);
    seen.most = std::max(seen.most, values);
  }
  const std::vector<Seen>& all() const { return all_; }
  bool has(std::string_view name) const { return by_name_.contains(std::string(name)); }

 private:
  std::vector<Seen> all_;
  size_t next_ = 0;  // in `all_`, likely
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace lockstep

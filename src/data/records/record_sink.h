// RecordSink: appends records whose values carry names and types of their own (JSON objects, Examples) to the
// columns of a block, in the types that are wanted there.
//
// Whole numbers become any numeric type that holds them, text becomes a number as in CSV, numbers become text
// where bytes are wanted, and a value that is absent is marked as missing. What cannot be taken throws a
// RecordProblem; the caller adds file and offset. Used by one thread, for one call of decode().
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/format/column_block.h"

namespace lockstep {

// Why a record cannot be used.
class RecordProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RecordSink {
 public:
  static constexpr int kUnwanted = -1;

  // About this many records will be appended.
  RecordSink(ColumnBlock& block, int64_t records);

  // What stood at this place of the last record: most records have their values in the same order. The key
  // points into the bytes of that record.
  struct Guess {
    std::string_view key;
    int column = kUnwanted;
  };
  const Guess* guess(size_t slot) const { return slot < guesses_.size() ? &guesses_[slot] : nullptr; }
  // The column of a key, or kUnwanted. `key` lives as long as the sink.
  int column_of(size_t slot, std::string_view key) {
    if (slot < guesses_.size() && guesses_[slot].key == key) return guesses_[slot].column;
    return look_up(slot, key);
  }

  // The same without remembering the key.
  int column_named(std::string_view key) const;
  const std::string& name(int column) const { return cells_[static_cast<size_t>(column)].column->name; }

  // The only value of a column in this record, if it is a plain number in a plain f64 column, which most are.
  // False: nothing was done, take the long way.
  bool takes_reals(int column) const { return cells_[static_cast<size_t>(column)].reals != nullptr; }
  bool take_real(int column, double value) {
    Cell& at = cell(column);
    if (at.reals == nullptr || at.record == record_ || !(std::fabs(value) <= kLargestNumber)) return false;
    at.record = record_;
    ++filled_;
    at.reals->push_back(value);
    return true;
  }

  // The values of a column in this record, between begin_cell and end_cell.
  void begin_cell(int column);
  void add_whole(int column, int64_t value);
  void add_real(int column, double value);
  void add_floats(int column, std::string_view bytes);  // little-endian
  // Text that lives as long as the block, or that is copied: it is not kept if `copied`.
  void add_text(int column, std::string_view text, bool copied = false);
  void end_cell(int column);
  // The value of the column is there, and says that it is missing.
  void set_missing(int column);

  ValueType type(int column) const { return cells_[static_cast<size_t>(column)].type; }
  int64_t width(int column) const { return cells_[static_cast<size_t>(column)].width; }
  // Those that were not met are missing.
  void end_record();
  // After the last record.
  void finish();

 private:
  static constexpr double kLargestNumber = 1e30;  // as in CSV

  struct Cell {
    BlockColumn* column = nullptr;
    std::vector<double>* reals = nullptr;  // its values, in a plain f64 column
    ValueType type = ValueType::kF32;
    int64_t width = 1;
    int64_t record = -1;  // that it was filled in last
    int64_t count = 0;    // values of this record
    bool missing = false;
  };

  int look_up(size_t slot, std::string_view key);
  Cell& cell(int column) { return cells_[static_cast<size_t>(column)]; }
  std::string_view kept(std::string_view text);
  void mark_missing(Cell& cell);
  [[noreturn]] static void refuse(const Cell& cell, std::string_view value, std::string_view wanted);

  ColumnBlock& block_;
  std::vector<Cell> cells_;
  std::vector<Guess> guesses_;
  int64_t record_ = 0;     // of the block
  size_t filled_ = 0;      // cells of this record
  char* arena_ = nullptr;  // of what block_.keep holds
  size_t arena_left_ = 0;
};

// FieldSurvey: which columns a shard without a schema has, by its first records: the names in the order in
// which they appear, what kinds of values they hold, and how many in a record.
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

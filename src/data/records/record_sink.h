// RecordSink: appends records whose values carry names and types of their own (JSON objects, Examples) to the
// columns of a block, in the types that are wanted there.
//
// Whole numbers become any numeric type that holds them, text becomes a number as in CSV, numbers become text
// where bytes are wanted, and a value that is absent is marked as missing. What cannot be taken throws a
// RecordProblem; the caller adds file and offset. Used by one thread, for one call of decode().
#pragma once
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
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

}  // namespace lockstep

// ColumnTally: what the values of one column are, counted over records in any order and by any number of
// threads: how many are missing, their range, how many different ones there are, and whether the column alone
// says what the label is.
//
// Different values are counted exactly up to kMostExact, and estimated beyond (HyperLogLog of 4096 registers,
// off by 1.6 % or so). All of it is the same however the records are divided.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/format/column_block.h"

namespace lockstep {

struct ColumnFacts {
  int64_t records = 0, missing = 0;
  int64_t distinct = 0;
  bool exact = true;  // otherwise `distinct` is an estimate
  bool decides_label = false;
  // Of numbers; nothing where all are missing.
  std::optional<double> smallest = {}, largest = {};

  double missing_share() const {
    return records == 0 ? 0 : static_cast<double>(missing) / static_cast<double>(records);
  }
  bool operator==(const ColumnFacts&) const = default;
};

// As kept in a file; nothing where the text is not that of so many columns.
std::string to_text(const std::vector<ColumnFacts>& facts);
std::optional<std::vector<ColumnFacts>> parse_facts(std::string_view text, size_t columns);

// The labels of a block: a hash of each, 0 where it is missing, and its number, NaN where it is none.
struct BlockLabels {
  std::vector<uint64_t> hashes = {};
  std::vector<double> numbers = {};

  // None where there is no label: then nothing is said about it.
  void set(const BlockColumn* column, size_t records);
};

class LabelTally {
 public:
  void add(const BlockLabels& labels);
  void merge(const LabelTally& other);
  // Whether there are at least two labels, none of which nearly all records have: then a column that decides
  // the label does not do so by chance.
  bool varies() const;

 private:
  int64_t records_ = 0;
  std::unordered_map<uint64_t, int64_t> counts_;
  bool many_ = false;
};

class ColumnTally {
 public:
  static constexpr size_t kMostExact = 1024;

  // With `parses`, texts that are numbers count for the range.
  void add(const BlockColumn& column, size_t records, const BlockLabels& labels, bool parses = false);
  void merge(const ColumnTally& other);
  ColumnFacts facts(const LabelTally& labels) const;

 private:
  using Registers = std::array<uint8_t, 4096>;
  // Numbers that records of one label have.
  struct LabelRange {
    uint64_t label = 0;
    double smallest = 0, largest = 0;
    int64_t count = 0;
  };

  void add_value(uint64_t hash, uint64_t label);
  void add_number(double value, uint64_t label);
  void add_range(const LabelRange& range);
  void estimate();  // from now on
  void sketch(uint64_t hash);
  bool decides(const LabelTally& labels) const;
  int64_t estimated() const;

  int64_t records_ = 0, missing_ = 0;
  double smallest_ = 0, largest_ = 0;
  int64_t numbers_ = 0;
  std::unordered_map<uint64_t, uint64_t> labels_;  // by value: the label of its records, or kSeveral
  std::unique_ptr<Registers> registers_;           // once there are too many values
  uint64_t missing_label_ = 0;
  std::vector<LabelRange> ranges_;
  bool other_labels_ = false;  // more than two
  bool labelled_ = false, same_as_label_ = true;
};

}  // namespace lockstep

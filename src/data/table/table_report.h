// TableReport: what the columns of a table are to the model that trains on it, what they hold, and which of
// them do not reach it and why.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/format/column_block.h"
#include "data/table/column_tally.h"

namespace lockstep {

enum class ColumnRole : uint8_t { kNumeric, kCategorical, kLabel, kText, kWeight, kTransformed };
// numeric, categorical, label, text, weight; kTransformed: only transforms read it.
std::string_view name_of(ColumnRole role);

struct UsedColumn {
  BlockField field;
  ColumnRole role = ColumnRole::kNumeric;
  std::optional<ColumnFacts> facts = {};  // nothing where the records were not looked through
};

// A column of the files that does not reach the model, and why.
struct LeftOutColumn {
  std::string name, reason;
  std::string advice = {};  // how to use it all the same, where that can be
};

struct TableReport {
  std::string label;
  std::vector<UsedColumn> used;
  std::vector<LeftOutColumn> left_out;
  // Reads these too, for who wants to know what was left out; by name, without those that cannot be read.
  std::function<std::map<std::string, ColumnFacts>()> left_out_facts = {};

  int64_t count(ColumnRole role) const;
};

// "0.5 to 120, 3 % missing, 1200 different values".
std::string facts_text(const ColumnFacts& facts);

}  // namespace lockstep

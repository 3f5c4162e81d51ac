#include "fuzz/csv.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "data/table/table.h"

namespace lockstep::testing {
namespace {

Batch read_all(const Source& source) {
  std::vector<int64_t> records(static_cast<size_t>(source.size()));
  std::iota(records.begin(), records.end(), 0);
  Batch batch(source.columns(), source.size());
  source.fill(records, batch);
  return batch;
}

void check_values(const Table& table, const Batch& batch) {
  const Source& source = *table.source;
  for (const float x : batch.values<float>(0))
    LOCKSTEP_CHECK(std::fabs(x) <= kNumericClip, "an input is {}", x);
  for (size_t i = 1; i + 1 < batch.columns().size(); ++i)
    for (const int32_t bucket : batch.values<int32_t>(i))
      LOCKSTEP_CHECK(bucket >= 0 && bucket < table.encoding->encoding().buckets, "bucket {}", bucket);
  for (int64_t r = 0; r < source.size(); ++r)
    LOCKSTEP_CHECK(source.describe(r).starts_with("table:"), "record {} is {}", r, source.describe(r));
}

}  // namespace

namespace {

// Records that were looked through when the table was opened are read without an error.
Batch read_looked_through(const Source& source) {
  try {
    return read_all(source);
  } catch (const UserError& error) {
    throw InternalError("a record that was looked through is refused: {}", error.what());
  }
}

bool check_table(std::string_view text, const TableOptions& options) {
  const auto shared = std::make_shared<const std::string>(text);
  const auto open = [&] {
    Shards shards;
    shards.push_back(open_text("table", shared));
    return shards;
  };
  try {
    const Table table = open_table(options, open);
    const Batch batch = read_looked_through(*table.source);
    check_values(table, batch);
    for (const UsedColumn& column : table.report.used) {
      const ColumnFacts& facts = *column.facts;
      LOCKSTEP_CHECK(facts.records == table.source->size() && facts.missing >= 0 &&
                         facts.missing <= facts.records && facts.distinct <= facts.records,
                     "{}: {}", column.field.name, facts_text(facts));
    }
    table.report.left_out_facts();
    const Table other = open_table(options, table, open);
    const Batch again = read_looked_through(*other.source);
    for (size_t i = 0; i < batch.columns().size(); ++i)
      LOCKSTEP_CHECK(std::memcmp(batch.data(i), again.data(i), static_cast<size_t>(batch.bytes(i))) == 0,
                     "column {} differs when it is read again", i);
  } catch (const UserError&) {
    return false;
  }
  return true;
}

}  // namespace

bool check_csv_table(std::string_view text) {
  TableOptions options;
  options.encoding.label = "label";
  options.encoding.buckets = 50;
  options.looks_through = true;
  TableOptions other = options;
  other.missing = std::make_shared<const MissingTexts>(std::vector<std::string>{"x", "0"});
  other.bad = BadRecords::kSkip;
  other.most_bad = 1;
  check_table(text, other);
  other.settings = {{"separator", ";"}};
  check_table(text, other);
  return check_table(text, options);
}

}  // namespace lockstep::testing

// The same transactions give a model the same inputs, bit for bit, from CSV, block and Parquet files.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "data/synthetic/fraud_writer.h"
#include "data/table/table.h"

namespace lockstep {
namespace {

constexpr int64_t kRows = 6000;

std::string shard_of(std::string_view format) {
  fraud::Generator generator(7, kRows);
  const auto writer = make_fraud_writer(format);
  std::string text;
  FraudRow row;
  writer->begin(text);
  for (int64_t i = 0; i < kRows; ++i) {
    row.set(generator.world(), generator.next());
    writer->add(row, text);
  }
  writer->end(text);
  return text;
}

Batch inputs_of(const std::string& format) {
  TableOptions options;
  options.format = format;
  options.encoding.label = "is_fraud";
  options.encoding.buckets = 1000;
  const std::string text = shard_of(format);
  const Table table = open_table(options, [&] {
    Shards shards;
    shards.push_back(open_text("fraud." + format, text));
    return shards;
  });
  std::vector<int64_t> records(kRows);
  std::iota(records.begin(), records.end(), 0);
  Batch batch(table.source->columns(), kRows);
  table.source->fill(records, batch);
  return batch;
}

TEST(FraudTable, IsTheSameInColumnarFormats) {
  const Batch csv = inputs_of("csv");
  for (const char* format : {"block", "parquet"}) {
    const Batch other = inputs_of(format);
    ASSERT_EQ(other.columns().size(), csv.columns().size());
    for (size_t c = 0; c < csv.columns().size(); ++c)
      EXPECT_EQ(std::memcmp(csv.data(c), other.data(c), static_cast<size_t>(csv.bytes(c))), 0)
          << format << " " << csv.columns()[c].name;
  }
}

}  // namespace
}  // namespace lockstep

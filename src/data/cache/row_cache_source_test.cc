// Records from kept rows are those of the files, bit by bit: for every format, for all ways to select them,
// and also when what was kept is damaged.
#include "data/cache/row_cache_source.h"

#include "data/format/format.h"
#include "data/testing/test_tables.h"

namespace lockstep {
namespace {

// What a run knows of its data besides the records.
void expect_alike(const Source& kept, const Source& plain) {
  EXPECT_EQ(kept.size(), plain.size());
  EXPECT_EQ(kept.fingerprint(), plain.fingerprint());
  EXPECT_EQ(kept.block_records(), plain.block_records());
  EXPECT_EQ(kept.files(), plain.files());
  EXPECT_EQ(kept.varies(), plain.varies());
  for (const int64_t record : {int64_t{0}, plain.size() / 2, plain.size() - 1}) {
    EXPECT_EQ(kept.describe(record), plain.describe(record));
    EXPECT_EQ(kept.record_in_files(record), plain.record_in_files(record));
  }
  EXPECT_EQ(mixed_rows(kept), mixed_rows(plain));
}

class KeptRows : public RowCacheTest {};

class KeptRowsOf : public RowCacheTest, public testing::WithParamInterface<const char*> {
 protected:
  KeptRowsOf() : RowCacheTest(GetParam(), 4000) {}
};

TEST_P(KeptRowsOf, AreThoseOfTheFiles) {
  const Table table = open();
  const std::string before = mixed_rows(*table.source);
  expect_alike(*keep(table.source), *table.source);
  // Made anew, from what lies there.
  EXPECT_EQ(mixed_rows(*keep(open().source)), before);
  EXPECT_EQ(kept().size(), 3);
}
INSTANTIATE_TEST_SUITE_P(Formats, KeptRowsOf, testing::Values("csv", "jsonl", "tfrecord", "parquet"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(KeptRows, AreThoseOfTheRecordsInUse) {
  options_.filter = "amount > 20";
  options_.split = TableSplit{"card", 0.3, 5};
  options_.subsample = TableSubsample{"is_fraud == 0", 0.5, true, {}, 5};
  options_.bad = BadRecords::kSkip;
  options_.most_bad = 0.5;
  const Table table = open();
  ASSERT_TRUE(table.held_out);
  ASSERT_EQ(table.source->columns().back().name, kWeightsColumn);
  expect_alike(*keep(table.source), *table.source);
  expect_alike(*keep(table.held_out), *table.held_out);
  EXPECT_EQ(kept().size(), 6);
  options_.filter = "amount > 21";
  const Table other = open();
  expect_alike(*keep(other.source), *other.source);
  EXPECT_EQ(kept().size(), 9);
}

TEST_F(KeptRows, OfAShardThatHasNoneInUseAreNotKept) {
  // Transactions lie in the order of time.
  const std::string second = read_file(open().source->shards().manifest().shards()[1].name);
  const std::string time = second.substr(second.find('\n') + 1, 19);
  options_.filter = "time < '" + time + "'";
  const Table table = open();
  ASSERT_EQ(table.source->size(), table.source->shards().manifest().first_of(1));
  expect_alike(*keep(table.source), *table.source);
  EXPECT_EQ(kept().size(), 1);
  options_.filter = "time >= '" + time + "'";
  const Table rest = open();
  expect_alike(*keep(rest.source), *rest.source);
  EXPECT_EQ(kept().size(), 3);
}

TEST_F(KeptRows, ThatAreDamagedAreDecodedAndMadeAgainAtTheNextStart) {
  const Table table = open();
  const std::string expected = mixed_rows(*table.source);
  keep(table.source);
  const std::vector<std::string> files = kept();
  flip(files[1], kRowsBegin + 4000);
  {
    const auto source = keep(open().source);
    EXPECT_EQ(mixed_rows(*source), expected);
    EXPECT_EQ(kept(), (std::vector{files[0], files[2]}));
    EXPECT_EQ(mixed_rows(*source), expected);
  }
  EXPECT_EQ(mixed_rows(*keep(open().source)), expected);
  EXPECT_EQ(kept(), files);
}

TEST_F(KeptRows, ThatAreChangedUnderARunAreAnError) {
  const auto source = keep(open().source);
  mixed_rows(*source);
  const std::string path = kept()[2];
  std::filesystem::last_write_time(path,
                                   std::filesystem::last_write_time(path) + std::chrono::milliseconds(5));
  try {
    mixed_rows(*source);
    FAIL() << "nothing was noticed";
  } catch (const UserError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(path + " at byte 4096: the file has changed"))
        << error.what();
  }
}

TEST_F(KeptRows, OfAFileThatIsCutUnderARunAreAnErrorNotASignal) {
  const auto source = keep(open().source);
  const std::string path = kept()[0];
  std::filesystem::resize_file(path, kRowsBegin);
  EXPECT_THROW(mixed_rows(*source), UserError);
  EXPECT_FALSE(std::filesystem::exists(path)) << "it is made again at the next start";
}

class RandomTransform : public Transform {
 public:
  std::string text() const override { return "random"; }
  bool random() const override { return true; }
  std::vector<BlockField> output(const std::vector<BlockField>& input) const override { return input; }
  void apply(const BlockPlace&, ColumnBlock&) const override {}
};

TEST_F(KeptRows, ThatAreOthersInEveryEpochAreRefused) {
  const Table table = open();
  Transforms transforms = table.transforms;
  transforms.push_back(std::make_shared<RandomTransform>());
  const auto shards = std::make_shared<ShardSet>(table.source->shards());
  const auto source =
      std::make_shared<FileSource>(shards, transforms, FileSourceOptions{.columns = table.columns});
  EXPECT_THROW(keep_rows(source, rows_), UserError);
}

TEST_F(KeptRows, CountWhatTheyRead) {
  const auto source = keep(open().source);
  mixed_rows(*source);
  const StageTimes times = source->stages()->read();
  EXPECT_EQ(times.decoded, source->size());
  EXPECT_EQ(times.bytes, source->size() * bytes_of_record(source->columns()));
  EXPECT_EQ(times.nanoseconds[static_cast<size_t>(InputStage::kDecode)], 0);
}

}  // namespace
}  // namespace lockstep

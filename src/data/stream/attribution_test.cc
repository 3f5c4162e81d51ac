// Where the time of a step's wait goes: files, decoder and transform are slowed in turn, and the report names
// the one that is slow. Times are of sleeps beside which everything else is small.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "data/csv/csv_format.h"
#include "data/reading/file_source.h"
#include "data/stream/batch_stream.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSlow{4};

class SlowBytes : public ByteSource {
 public:
  SlowBytes(std::unique_ptr<ByteSource> bytes, milliseconds slow)
      : ByteSource(bytes->name()), bytes_(std::move(bytes)), slow_(slow) {}
  int64_t size() const override { return bytes_->size(); }
  void read(int64_t offset, std::span<char> out) const override {
    std::this_thread::sleep_for(slow_);
    bytes_->read(offset, out);
  }
  std::string stamp() const override { return bytes_->stamp(); }

 private:
  std::unique_ptr<ByteSource> bytes_;
  milliseconds slow_;
};

class SlowDecoder : public ShardDecoder {
 public:
  SlowDecoder(const ByteSource& bytes, const ShardIndex& index, std::unique_ptr<ShardDecoder> decoder,
              milliseconds slow)
      : ShardDecoder(bytes, index), decoder_(std::move(decoder)), slow_(slow) {}
  void decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const override {
    std::this_thread::sleep_for(slow_);
    decoder_->decode(fetch, first, count, block);
  }

 private:
  std::unique_ptr<ShardDecoder> decoder_;
  milliseconds slow_;
};

class SlowFormat : public Format {
 public:
  SlowFormat(const FormatOptions& options, milliseconds slow)
      : Format(options), csv_(make_csv_format(options)), slow_(slow) {}
  std::string_view name() const override { return "slow"; }
  int version() const override { return 1; }
  std::vector<BlockField> fields(const ByteSource& shard) const override { return csv_->fields(shard); }
  ShardIndex index(const ByteSource& shard, const Progress& progress) const override {
    return csv_->index(shard, progress);
  }
  std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const override {
    return std::make_unique<SlowDecoder>(shard, index, csv_->open(shard, index), slow_);
  }

 private:
  std::unique_ptr<Format> csv_;
  milliseconds slow_;
};

class SlowTransform : public Transform {
 public:
  explicit SlowTransform(milliseconds slow) : slow_(slow) {}
  std::string text() const override { return "slow"; }
  std::vector<BlockField> output(const std::vector<BlockField>& input) const override { return input; }
  void apply(const BlockPlace&, ColumnBlock&) const override { std::this_thread::sleep_for(slow_); }

 private:
  milliseconds slow_;
};

// Batches of one block each of numbers in CSV, where one stage is slow.
InputReport read_slowed(std::string_view slow, int readers) {
  const auto time_of = [&](std::string_view stage) { return stage == slow ? kSlow : milliseconds(0); };
  std::string text = "x\n";
  for (int i = 0; i < 640; ++i) text += fmt::format("{}\n", i);
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(std::make_unique<SlowBytes>(open_text("x.csv", text), time_of("fetch")));
  const FormatOptions columns{{{"x", ValueType::kF32, 1}}};
  const auto set = std::make_shared<const ShardSet>(std::make_unique<SlowFormat>(columns, time_of("decode")),
                                                    std::move(shards));
  const FileSource source(set, {std::make_shared<SlowTransform>(time_of("transform"))},
                          {.columns = {{"x", DType::kF32, {}}}, .block = 32});
  BatchPlan plan{20, 32, 0,
                 [](int64_t batch, int64_t row, std::span<int64_t> records, std::vector<int64_t>*) {
                   std::iota(records.begin(), records.end(), batch * 32 + row);
                 }};
  ReaderPool pool(readers);
  BatchStream stream(source, plan, {.pool = &pool, .processors = readers});
  for (int64_t n = 0; n < plan.batches; ++n) EXPECT_EQ(stream.get(n).values<float>(0)[5], n * 32 + 5);
  return stream.report();
}

TEST(Attribution, NamesTheSlowStage) {
  for (const std::string_view slow : {"fetch", "decode", "transform"})
    for (const int readers : {1, 3}) {
      const InputReport report = read_slowed(slow, readers);
      EXPECT_EQ(report.slowest(), slow) << readers << " readers: " << report.sentence();
      EXPECT_NE(report.sentence().find(fmt::format("of that for {}: ", slow)), std::string::npos)
          << report.sentence();
      const auto stage =
          static_cast<size_t>(std::find(kWaitNames.begin(), kWaitNames.end(), slow) - kWaitNames.begin());
      EXPECT_GT(report.waited[stage], report.waited_in_all() / 2);
    }
}

TEST(InputReport, SaysWhatToDoAboutEachCause) {
  InputReport report;
  report.seconds = 10;
  EXPECT_EQ(report.sentence(), "input keeps up: steps waited for it 0.0 % of the time");
  std::set<std::string> sentences;
  for (size_t cause = 0; cause < kWaitNames.size(); ++cause) {
    report.waited = {};
    report.waited[cause] = 2;
    EXPECT_EQ(report.slowest(), kWaitNames[cause]);
    EXPECT_TRUE(report.sentence().starts_with(
        fmt::format("steps waited for input 20.0 % of the time, 100 % of that for {}: ", kWaitNames[cause])))
        << report.sentence();
    sentences.insert(report.sentence().substr(report.sentence().find(": ")));
  }
  EXPECT_EQ(sentences.size(), kWaitNames.size());
}

TEST(InputReport, NamesTheCacheWhereATableCouldHaveOne) {
  InputReport report;
  report.seconds = 10;
  const auto names_it = [&] { return report.sentence().find("data.cache: rows") != std::string::npos; };
  for (size_t cause = 0; cause < kWaitNames.size(); ++cause) {
    report.waited = {};
    report.waited[cause] = 2;
    report.could_keep_rows = false;
    EXPECT_FALSE(names_it()) << report.sentence();
    report.could_keep_rows = true;
    EXPECT_EQ(names_it(), kWaitNames[cause] == "decode" || kWaitNames[cause] == "transform")
        << report.sentence();
  }
}

TEST(InputReport, OfAnIntervalIsTheDifference) {
  InputReport before, after;
  before.batches = 10;
  before.seconds = 2;
  before.waited[0] = 1;
  after.batches = 30;
  after.seconds = 5;
  after.waited[0] = 1.5;
  after.peak_bytes = 7;
  const InputReport between = after - before;
  EXPECT_EQ(between.batches, 20);
  EXPECT_EQ(between.seconds, 3);
  EXPECT_EQ(between.waited_in_all(), 0.5);
  EXPECT_EQ(between.peak_bytes, 7);
}

}  // namespace
}  // namespace lockstep

// What goes wrong with files, for every format of tables, met the way a run meets it: through the table, its
// blocks and a stream of batches with readers. Each fault is named with file and byte. Under `stop`, all
// batches before it come as they should; under `skip`, the damaged records are listed and nothing else is
// lost. What makes no single record bad (a cut footer, a disk error, a file that changes) stops both.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/block/block_layout.h"
#include "data/bytes/tfrecord_frame.h"
#include "data/order/selection.h"
#include "data/stream/batch_stream.h"
#include "data/synthetic/fraud_shards.h"
#include "data/table/table.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// What was done to a shard, and what must be said about it.
struct Damage {
  int64_t offset = 0;  // that the error names
  int64_t first = 0;   // the first record that is lost, of those in the shard
  int64_t lost = 1;    // how many cannot be used; 0: the whole shard is refused, whatever the policy
  int64_t gone = 0;    // records behind them that are no longer in the file
};

struct Fault {
  std::string format;
  std::string name;
  std::function<Damage(std::string& bytes)> make;
};

constexpr int64_t kRows = 1500;    // of a shard
constexpr int64_t kVictim = 1000;  // the record that is damaged

size_t line_begin(const std::string& text, int64_t line) {
  size_t at = 0;
  for (int64_t i = 0; i < line; ++i) at = text.find('\n', at) + 1;
  return at;
}

size_t frame_begin(const std::string& bytes, int64_t record) {
  size_t at = 0;
  for (int64_t i = 0; i < record; ++i)
    at += static_cast<size_t>(kTfrecordHeader + tfrecord_length(bytes.data() + at) + kTfrecordTrailer);
  return at;
}

// Of a table of lines: `change` gets the line of the victim.
std::function<Damage(std::string&)> line_fault(int64_t header_lines,
                                               const std::function<void(std::string& line)>& change) {
  return [=](std::string& text) {
    const size_t begin = line_begin(text, header_lines + kVictim);
    const size_t end = text.find('\n', begin);
    std::string line = text.substr(begin, end - begin);
    change(line);
    text.replace(begin, end - begin, line);
    return Damage{static_cast<int64_t>(begin), kVictim};
  };
}

std::function<Damage(std::string&)> cut_line(int64_t header_lines) {
  return [=](std::string& text) {
    const size_t begin = line_begin(text, header_lines + kVictim);
    text.resize(begin + 10);
    return Damage{static_cast<int64_t>(begin), kVictim, 1, kRows - kVictim - 1};
  };
}

Damage cut_end(std::string& bytes) {
  bytes.resize(bytes.size() - 5);
  return {static_cast<int64_t>(bytes.size()), 0, 0};
}

// Of the frame of the victim, or of what is in it.
std::function<Damage(std::string&)> frame_fault(size_t byte) {
  return [=](std::string& bytes) {
    const size_t begin = frame_begin(bytes, kVictim);
    bytes[begin + byte] ^= 0x20;
    return Damage{static_cast<int64_t>(begin), kVictim};
  };
}

Damage cut_frame(std::string& bytes) {
  const size_t begin = frame_begin(bytes, kVictim);
  bytes.resize(begin + 20);
  return {static_cast<int64_t>(begin), kVictim, 1, kRows - kVictim - 1};
}

Damage wrong_block_hash(std::string& bytes) {
  const BlockFooter footer = read_block_footer(*open_text("file", bytes));
  const StoredBlock& block = footer.blocks[1];
  bytes[static_cast<size_t>(block.chunks[2].offset)] ^= 1;
  return {block.chunks[2].offset, footer.block_records, block.records};
}

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all{
      {"csv", "cut", cut_line(1)},
      {"csv", "fields", line_fault(1, [](std::string& line) { line += ",1"; })},
      {"csv", "fewer_fields", line_fault(1, [](std::string& line) { line.resize(line.rfind(',')); })},
      {"csv", "utf8", line_fault(1, [](std::string& line) { line.insert(line.find("m0"), "\xff"); })},
      {"csv", "quote", line_fault(1, [](std::string& line) { line.insert(line.find("m0") + 1, "\""); })},
      {"csv", "quote_unused",
       line_fault(1, [](std::string& line) { line.insert(line.find(",k0") + 2, "\""); })},
      {"csv", "quote_never_closed",
       line_fault(1, [](std::string& line) { line.insert(line.find("m0"), "\""); })},
      {"jsonl", "cut", cut_line(0)},
      {"jsonl", "utf8", line_fault(0, [](std::string& line) { line.insert(line.find("m0"), "\xff"); })},
      {"jsonl", "no_json", line_fault(0, [](std::string& line) { line.pop_back(); })},
      {"tfrecord", "cut", cut_frame},
      {"tfrecord", "crc", frame_fault(static_cast<size_t>(kTfrecordHeader) + 30)},
      {"tfrecord", "crc_of_length", frame_fault(0)},
      {"block", "cut", cut_end},
      {"block", "hash", wrong_block_hash},
      {"parquet", "cut", cut_end},
  };
  return all;
}

std::vector<uint64_t> row_hashes(const Batch& batch) {
  std::vector<uint64_t> hashes;
  for (int64_t row = 0; row < batch.records(); ++row) {
    std::string bytes;
    for (size_t c = 0; c < batch.columns().size(); ++c) {
      const auto each = static_cast<size_t>(batch.bytes(c) / batch.records());
      bytes.append(static_cast<const char*>(batch.data(c)) + static_cast<size_t>(row) * each, each);
    }
    hashes.push_back(entity_hash(1, bytes));
  }
  return hashes;
}

// What a stream gives, and what it ends with where it does not come to its end.
struct Reading {
  std::vector<uint64_t> rows;
  std::string error;
};

Reading read_all(const Source& source) {
  constexpr int64_t kBatch = 50;
  BatchPlan plan;
  plan.batches = (source.size() + kBatch - 1) / kBatch;
  plan.rows = kBatch;
  plan.records = [&](int64_t batch, int64_t row, std::span<int64_t> records, std::vector<int64_t>*) {
    for (int64_t r = batch * kBatch + row; int64_t & record : records)
      record = r < source.size() ? r++ : kNoRecord;
  };
  ReaderPool pool(2);
  BatchStream stream(source, plan, {.pool = &pool, .processors = 2});
  Reading reading;
  try {
    for (int64_t n = 0; n < plan.batches; ++n)
      for (const uint64_t hash : row_hashes(stream.get(n))) reading.rows.push_back(hash);
    reading.rows.resize(static_cast<size_t>(source.size()));
  } catch (const UserError& error) {
    reading.error = error.what();
  }
  return reading;
}

class FaultyTables : public testing::Test {
 protected:
  void write(const std::string& format) {
    format_ = format;
    FraudOptions fraud;
    fraud.rows = 3 * kRows + 100;
    fraud.eval_rows = 100;
    fraud.shards = 3;
    fraud.format = format;
    write_fraud(fraud, folder_.path(format), true);
    fitted_ = open_table(options(BadRecords::kStop), {files()});
    whole_ = read_all(*fitted_.source);
    ASSERT_EQ(whole_.error, "");
    ASSERT_EQ(whole_.rows.size(), static_cast<size_t>(3 * kRows));
  }

  TableOptions options(BadRecords bad) const {
    TableOptions options;
    options.format = format_;
    options.encoding.label = "is_fraud";
    options.encoding.ignore = {"card"};
    options.encoding.buckets = 500;
    options.bad = bad;
    options.most_bad = 0.5;
    return options;
  }

  std::string files() const { return folder_.path(format_ + "/train-*." + format_); }
  // The shard in the middle.
  std::string victim() const { return folder_.path(fmt::format("{0}/train-00001-of-00003.{0}", format_)); }

  // The records under a policy, encoded as the undamaged ones were.
  Reading read(BadRecords bad, std::vector<std::string>* left_out = nullptr) const {
    try {
      const Table table = open_table(options(bad), fitted_, {files()});
      if (left_out != nullptr) *left_out = table.source->shards().bad_records();
      return read_all(*table.source);
    } catch (const UserError& error) {
      return {{}, error.what()};
    }
  }

  void expect_named(const std::string& error, int64_t offset) const {
    EXPECT_TRUE(error.starts_with(victim())) << error;
    EXPECT_NE((error + " ").find(fmt::format("byte {}", offset)), std::string::npos)
        << error << " " << offset;
  }

  std::vector<uint64_t> whole_without(int64_t first, int64_t count) const {
    std::vector<uint64_t> rows = whole_.rows;
    rows.erase(rows.begin() + first, rows.begin() + first + count);
    return rows;
  }

  TestFolder folder_;
  std::string format_;
  Table fitted_;
  Reading whole_;
};

class DamagedTables : public FaultyTables, public testing::WithParamInterface<Fault> {};

TEST_P(DamagedTables, AreNamedAndLoseNothingElse) {
  write(GetParam().format);
  std::string bytes = read_file(victim());
  const Damage damage = GetParam().make(bytes);
  write_file(victim(), bytes);

  const Reading stopped = read(BadRecords::kStop);
  expect_named(stopped.error, damage.offset);
  EXPECT_TRUE(std::equal(stopped.rows.begin(), stopped.rows.end(), whole_.rows.begin()));

  std::vector<std::string> left_out;
  const Reading skipped = read(BadRecords::kSkip, &left_out);
  if (damage.lost == 0) return expect_named(skipped.error, damage.offset);
  EXPECT_EQ(skipped.error, "");
  ASSERT_EQ(left_out.size(), 1u);
  expect_named(left_out[0], damage.offset);
  EXPECT_EQ(skipped.rows, whole_without(kRows + damage.first, damage.lost + damage.gone));
}

INSTANTIATE_TEST_SUITE_P(Faults, DamagedTables, testing::ValuesIn(faults()),
                         [](const auto& info) { return info.param.format + "_" + info.param.name; });

class ChangingTables : public FaultyTables, public testing::WithParamInterface<std::string> {};

TEST_P(ChangingTables, AFileThatChangesWhileItIsReadStopsBothPolicies) {
  write(GetParam());
  const std::string bytes = read_file(victim());
  for (const BadRecords bad : {BadRecords::kStop, BadRecords::kSkip}) {
    write_file(victim(), bytes);
    const Table table = open_table(options(bad), fitted_, {files()});
    {
      // In place: the same file, of the same size.
      const int file = open(victim().c_str(), O_WRONLY);
      ASSERT_EQ(pwrite(file, "~", 1, static_cast<off_t>(bytes.size() / 2)), 1);
      const timespec times[2] = {{1, 0}, {1, 0}};
      ASSERT_EQ(futimens(file, times), 0);
      close(file);
    }
    const Reading reading = read_all(*table.source);
    EXPECT_TRUE(reading.error.starts_with(victim() + " at byte ")) << reading.error;
    EXPECT_NE(reading.error.find("the file has changed since it was opened"), std::string::npos);
    EXPECT_TRUE(std::equal(reading.rows.begin(), reading.rows.end(), whole_.rows.begin()));
  }
}

TEST_P(ChangingTables, AFileThatChangedSinceItWasIndexedIsIndexedAgain) {
  write(GetParam());
  const std::string before = fitted_.source->fingerprint();
  fs::copy_file(folder_.path(fmt::format("{0}/train-00000-of-00003.{0}", format_)), victim(),
                fs::copy_options::overwrite_existing);
  const Table table = open_table(options(BadRecords::kStop), fitted_, {files()});
  EXPECT_NE(table.source->fingerprint(), before);
  std::vector<uint64_t> expected = whole_.rows;
  std::copy_n(expected.begin(), kRows, expected.begin() + kRows);
  EXPECT_EQ(read_all(*table.source).rows, expected);
}

TEST_P(ChangingTables, AFileThatVanishesIsReadToItsEndAndMissedAtTheNextStart) {
  write(GetParam());
  const Table table = open_table(options(BadRecords::kStop), fitted_, {files()});
  fs::remove(victim());
  const Reading reading = read_all(*table.source);
  EXPECT_EQ(reading.error, "");
  EXPECT_EQ(reading.rows, whole_.rows);
  for (const BadRecords bad : {BadRecords::kStop, BadRecords::kSkip}) {
    try {
      open_table(options(bad), fitted_, {victim()});
      FAIL();
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(victim()), std::string::npos) << error.what();
    }
  }
}

// Descriptors of this process that have the file open.
std::vector<int> descriptors_of(const std::string& path) {
  std::vector<int> found;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry.path(), gone) == fs::path(path))
      found.push_back(std::stoi(entry.path().filename().string()));
  }
  return found;
}

TEST_P(ChangingTables, AReadErrorStopsBothPolicies) {
  write(GetParam());
  fitted_.source.reset();
  for (const BadRecords bad : {BadRecords::kStop, BadRecords::kSkip}) {
    const Table table = open_table(options(bad), fitted_, {files()});
    // Behind the open file we put one of which no read succeeds: nothing is mapped at such low addresses.
    const int failing = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(failing, 0);
    for (const int file : descriptors_of(victim())) ASSERT_EQ(dup2(failing, file), file);
    close(failing);
    const Reading reading = read_all(*table.source);
    EXPECT_TRUE(reading.error.starts_with(victim() + " at byte ")) << reading.error;
    EXPECT_NE(reading.error.find("cannot read: Input/output error"), std::string::npos) << reading.error;
    EXPECT_TRUE(std::equal(reading.rows.begin(), reading.rows.end(), whole_.rows.begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ChangingTables,
                         testing::Values("csv", "jsonl", "tfrecord", "block", "parquet"),
                         [](const auto& info) { return info.param; });

// A shard with one very long record in the middle, which takes no memory itself.
class LongRecord : public ByteSource {
 public:
  LongRecord(std::string name, std::string before, int64_t length, std::string after)
      : ByteSource(std::move(name)), before_(std::move(before)), length_(length), after_(std::move(after)) {}

  int64_t size() const override {
    return static_cast<int64_t>(before_.size()) + length_ + static_cast<int64_t>(after_.size());
  }
  void read(int64_t offset, std::span<char> out) const override {
    std::fill(out.begin(), out.end(), 'z');
    put(before_, 0, offset, out);
    put(after_, static_cast<int64_t>(before_.size()) + length_, offset, out);
  }
  std::string stamp() const override { return "long text"; }

 private:
  static void put(const std::string& part, int64_t at, int64_t offset, std::span<char> out) {
    const int64_t begin = std::max(at, offset);
    const int64_t end =
        std::min(at + static_cast<int64_t>(part.size()), offset + static_cast<int64_t>(out.size()));
    if (begin < end) std::copy_n(part.data() + (begin - at), end - begin, out.data() + (begin - offset));
  }

  std::string before_;
  int64_t length_;
  std::string after_;
};

int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

constexpr int64_t kGigabyte = 1'000'000'000;

struct LongCase {
  std::string format, before, after;
  int64_t offset;
};

class LongRecordsLong : public testing::TestWithParam<LongCase> {};

TEST_P(LongRecordsLong, AreNamedOrLeftOutInLittleMemory) {
  const LongCase& shape = GetParam();
  const auto open = [&](BadRecords bad) {
    TableOptions options;
    options.format = shape.format;
    options.encoding.label = "label";
    options.bad = bad;
    options.most_bad = 0.5;
    return open_table(options, [&] {
      Shards shards;
      shards.push_back(std::make_unique<LongRecord>("long", shape.before, kGigabyte, shape.after));
      return shards;
    });
  };
  const int64_t before = peak_memory();
  try {
    read_all(*open(BadRecords::kStop).source);
    FAIL();
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("long")) << text;
    EXPECT_NE(text.find(fmt::format("byte {}", shape.offset)), std::string::npos) << text;
  }
  const Table table = open(BadRecords::kSkip);
  EXPECT_EQ(read_all(*table.source).rows.size(), 4u);
  ASSERT_EQ(table.source->shards().bad_records().size(), 1u);
  EXPECT_TRUE(
      table.source->shards().bad_records()[0].starts_with(fmt::format("long at byte {}: ", shape.offset)))
      << table.source->shards().bad_records()[0];
  EXPECT_LT(peak_memory() - before, 160 << 20);
}

// A frame that says how long its content is; the content's own crc is never looked at.
std::string header_of_frame(int64_t length) {
  std::string frame(12, '\0');
  std::memcpy(frame.data(), &length, 8);
  const uint32_t crc = masked_crc32c(std::string_view(frame).substr(0, 8));
  std::memcpy(frame.data() + 8, &crc, 4);
  return frame;
}

std::string example(float x, int label) {
  const auto field = [](int number, const std::string& content) {
    return std::string(1, static_cast<char>(number * 8 + 2)) + static_cast<char>(content.size()) + content;
  };
  const std::string value(reinterpret_cast<const char*>(&x), 4);
  const std::string features =
      field(1, field(1, "x") + field(2, field(2, field(1, value)))) +
      field(1, field(1, "label") + field(2, field(3, field(1, std::string(1, static_cast<char>(label))))));
  std::string frame;
  append_tfrecord(field(1, features), frame);
  return frame;
}

std::vector<LongCase> long_cases() {
  const std::string two = example(1, 0) + example(2, 1);
  return {{"csv", "x,label\n1,0\n2,1\n", "\n3,0\n4,1\n", 16},
          {"jsonl", "{\"x\":1,\"label\":0}\n{\"x\":2,\"label\":1}\n",
           "\n{\"x\":3,\"label\":0}\n{\"x\":4,\"label\":1}\n", 36},
          {"tfrecord", two + header_of_frame(kGigabyte), "crc." + two, static_cast<int64_t>(two.size())}};
}

INSTANTIATE_TEST_SUITE_P(Formats, LongRecordsLong, testing::ValuesIn(long_cases()),
                         [](const auto& info) { return info.param.format; });

}  // namespace
}  // namespace lockstep

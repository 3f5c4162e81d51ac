// Rows straight from mapped files: the bytes of a FileSource, and faults that are named.
#include "data/reading/mapped_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/open/corpus.h"
#include "data/reading/file_source.h"
#include "data/testing/test_corpora.h"
#include "data/tokens/tokens_format.h"

namespace lockstep {
namespace {

constexpr int64_t kSeq = 64;
constexpr int64_t kRows = 300;  // of each file, which is some pages

std::vector<int32_t> numbers(int64_t count, int32_t seed) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 31 + seed) % 997;
  return tokens;
}

class MappedRows : public testing::Test {
 protected:
  MappedRows() {
    folder_.write("d/a.bin", llm_c_shard(numbers(kRows * kSeq + 1, 1), false));
    const Documents documents{numbers(kRows * kSeq / 2, 2), numbers(kRows * kSeq / 2 + 9, 3)};
    folder_.write("d/b.idx", megatron_index(documents, 8, 2));
    folder_.write("d/b.bin", token_bytes<uint16_t>(documents));
  }

  std::shared_ptr<ShardSet> shards(int64_t vocab) const {
    FormatOptions format, indexed_by;
    format.settings = {{"seq", std::to_string(kSeq)}, {"vocab", std::to_string(vocab)}};
    // An index of the smaller vocabulary would refuse the shards.
    indexed_by.settings = {{"seq", std::to_string(kSeq)}, {"vocab", "1000"}};
    const auto index = make_tokens_format(indexed_by);
    return std::make_shared<ShardSet>(make_tokens_format(format), open_token_shards({folder_.path("d")}),
                                      ShardSetOptions{.indexed_by = index.get()});
  }

  static std::vector<Column> columns() {
    return {{"tokens", DType::kI32, {kSeq}}, {"targets", DType::kI32, {kSeq}}};
  }

  // What is wrong with reading a record.
  static std::string fault(const Source& source, int64_t record) {
    Batch batch(source.columns(), 1);
    try {
      source.fill(std::vector{record}, batch);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  TestFolder folder_;
};

TEST_F(MappedRows, AreThoseOfAFileSource) {
  const MappedSource mapped(shards(1000), columns(), 1 << 20);
  const FileSource blocks(shards(1000), {}, {.columns = columns()});
  ASSERT_EQ(mapped.size(), 2 * kRows);
  EXPECT_EQ(mapped.fingerprint(), blocks.fingerprint());
  EXPECT_EQ(mapped.block_records(), blocks.block_records());
  std::vector<int64_t> records{kNoRecord};
  for (int64_t i = 0; i < mapped.size(); ++i) records.push_back(i * 257 % mapped.size());
  Batch a(columns(), static_cast<int64_t>(records.size())), b(columns(), a.records());
  mapped.fill(records, a);
  blocks.fill(records, b);
  for (size_t c = 0; c < 2; ++c)
    EXPECT_TRUE(std::ranges::equal(a.values<int32_t>(c), b.values<int32_t>(c))) << c;
  EXPECT_EQ(mapped.stages()->read().used, a.records());
}

TEST_F(MappedRows, AreTakenWhereFilesHoldThemAsTheyAre) {
  CorpusOptions options{.seq = kSeq, .vocab = 1000};
  const auto is_mapped = [&](const std::string& file) {
    return dynamic_cast<const MappedSource*>(open_corpus(options, {folder_.path(file)}).get()) != nullptr;
  };
  EXPECT_TRUE(is_mapped("d"));
  options.separate = true;  // has to look for documents
  EXPECT_FALSE(is_mapped("d/b.bin"));
  options.separate = false;
  options.vocab = 100000;  // 2 bytes in the file, 4 in rows
  EXPECT_FALSE(is_mapped("d"));
}

TEST_F(MappedRows, OfAFileThatIsCutAreAnErrorThatNamesIt) {
  const MappedSource source(shards(1000), columns(), 1 << 20);
  const auto half = static_cast<int64_t>(std::filesystem::file_size(folder_.path("d/a.bin"))) / 2;
  std::filesystem::resize_file(folder_.path("d/a.bin"), static_cast<uintmax_t>(half));
  for (int i = 0; i < 2; ++i) {
    const std::string gone = fault(source, kRows - 1);
    EXPECT_TRUE(gone.starts_with(folder_.path("d/a.bin") + ": ends at byte")) << gone;
    const std::string left = fault(source, 0);
    EXPECT_TRUE(left.starts_with(folder_.path("d/a.bin") + " at byte 1024: the file has changed")) << left;
    EXPECT_EQ(fault(source, kRows), "") << "the other file is as it was";
  }
}

TEST_F(MappedRows, OfAFileThatChangesAreAnErrorThatNamesIt) {
  const MappedSource source(shards(1000), columns(), 1 << 20);
  EXPECT_EQ(fault(source, kRows + 2), "");
  const std::string path = folder_.path("d/b.bin");
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).write("\1\0\1\0", 4);
  std::filesystem::last_write_time(path,
                                   std::filesystem::last_write_time(path) + std::chrono::milliseconds(5));
  const std::string changed = fault(source, kRows + 2);
  EXPECT_TRUE(changed.starts_with(path + " at byte 256: the file has changed")) << changed;
}

TEST_F(MappedRows, WithAForeignTokenAreTheErrorOfAFileSource) {
  const MappedSource mapped(shards(990), columns(), 1 << 20);
  const FileSource blocks(shards(990), {}, {.columns = columns()});
  int64_t first = 0;
  while (first < kRows && fault(mapped, first).empty()) ++first;
  EXPECT_NE(fault(mapped, first).find("is not in the vocabulary of 990"), std::string::npos);
  EXPECT_EQ(fault(mapped, first), fault(blocks, first));
}

}  // namespace
}  // namespace lockstep

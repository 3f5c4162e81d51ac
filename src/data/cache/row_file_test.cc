// Files of rows: what was written is read, and what is damaged is found where it is.
#include "data/cache/row_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

constexpr int64_t kRowBytes = 100;
constexpr int64_t kRecords = 1000;

class RowFiles : public testing::Test {
 protected:
  RowFiles() : header_{std::string(64, 'a'), std::string(64, 'b'), kRecords, kRowBytes} {
    for (int64_t i = 0; i < kRecords * kRowBytes; ++i) rows_.push_back(static_cast<std::byte>(i * i % 251));
  }

  // In pieces of two chunks, the last first.
  void write() const {
    RowFileWriter writer(path_, header_);
    const int64_t step = 2 * header_.chunk_rows();
    for (int64_t at = (kRecords - 1) / step * step; at >= 0; at -= step)
      writer.write(at,
                   std::span(rows_).subspan(static_cast<size_t>(at * kRowBytes),
                                            static_cast<size_t>(std::min(step, kRecords - at) * kRowBytes)));
    const std::string temporary = writer.file().temporary();
    EXPECT_TRUE(std::filesystem::exists(temporary));
    writer.finish();
    EXPECT_FALSE(std::filesystem::exists(temporary));
  }
  void damage(int64_t offset) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(offset);
    file.put(byte);
  }
  std::string error() const {
    try {
      RowFile{open_file(path_)};
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  TestFolder folder_;
  std::string path_ = folder_.path("a.rows");
  RowFileHeader header_;
  std::vector<std::byte> rows_;
};

TEST_F(RowFiles, HoldWhatWasWritten) {
  write();
  const RowFile file(open_file(path_));
  EXPECT_EQ(file.header(), header_);
  EXPECT_EQ(file.header().chunk_rows(), 64);
  for (const int64_t record : {int64_t{0}, int64_t{63}, int64_t{64}, kRecords - 1}) {
    EXPECT_TRUE(file.check(record));
    EXPECT_TRUE(std::equal(file.row(record), file.row(record + 1), rows_.begin() + record * kRowBytes));
  }
}

TEST_F(RowFiles, AChunkThatIsDamagedIsFoundAndNoOtherOne) {
  write();
  damage(kRowsBegin + 130 * kRowBytes + 7);  // in the third chunk
  damage(header_.rows_end() + 5 * 8);        // the hash of the sixth
  const RowFile file(open_file(path_));
  for (int again = 0; again < 2; ++again)
    for (int64_t record = 0; record < kRecords; ++record)
      EXPECT_EQ(file.check(record), record / 64 != 2 && record / 64 != 5) << record;
}

TEST_F(RowFiles, ChunksThatChangedPlacesAreFound) {
  std::fill(rows_.begin(), rows_.end(), std::byte{1});  // equal, but for their numbers
  write();
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    std::string hash(8, '\0');
    file.seekg(header_.rows_end());
    file.read(hash.data(), 8);
    file.seekp(header_.rows_end() + 8);
    file.write(hash.data(), 8);
  }
  const RowFile file(open_file(path_));
  EXPECT_TRUE(file.check(0));
  EXPECT_FALSE(file.check(64));
}

TEST_F(RowFiles, ADamagedHeaderIsRefused) {
  for (int64_t offset = 0; offset < 168; ++offset) {
    write();
    damage(offset);
    EXPECT_NE(error(), "") << offset;
  }
  write();
  EXPECT_EQ(error(), "");
}

TEST_F(RowFiles, AFileOfAnotherLengthIsRefused) {
  write();
  std::filesystem::resize_file(path_, static_cast<uintmax_t>(header_.file_bytes() - 1));
  EXPECT_NE(error().find("which is not 1000 rows of 100 bytes"), std::string::npos) << error();
  std::filesystem::resize_file(path_, 10);
  EXPECT_NE(error().find("10 bytes are no file of rows"), std::string::npos) << error();
}

TEST_F(RowFiles, WhatIsNotCompleteIsRemoved) {
  {
    RowFileWriter writer(path_, header_);
    writer.write(0, std::span(rows_).first(static_cast<size_t>(64 * kRowBytes)));
    EXPECT_TRUE(std::filesystem::exists(writer.file().temporary()));
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace lockstep

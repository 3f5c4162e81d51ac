// RowFile: the encoded rows of one shard, kept in a file that is mapped into memory: what data.cache reads.
//
//   header   4096 bytes: magic with the version, key, content, records, bytes of a row, XXH3 of all these
//   rows     of one width, one after another
//   hashes   8 bytes for every chunk of rows (a power of two, about 8 KiB): XXH3, seeded with its number
//
// Numbers are little-endian. A chunk is checked when it is first touched by a process, so that opening takes
// no time and rows that were damaged are never used. What is in the file follows from the key alone.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/new_file.h"
#include "data/bytes/byte_source.h"

namespace lockstep {

inline constexpr std::string_view kRowsMagic = "lockstep.rows.1\n";
inline constexpr int64_t kRowsBegin = 4096;

struct RowFileHeader {
  std::string key;      // 64 digits: what the rows were made of, and how
  std::string content;  // 64 digits: the shard's bytes alone
  int64_t records = 0;
  int64_t row_bytes = 0;

  bool operator==(const RowFileHeader&) const = default;

  int64_t chunk_rows() const;
  int64_t chunks() const { return (records + chunk_rows() - 1) / chunk_rows(); }
  int64_t rows_end() const { return kRowsBegin + records * row_bytes; }
  int64_t file_bytes() const { return rows_end() + chunks() * 8; }
};

// As it stands in the file, kRowsBegin bytes.
std::string to_bytes(const RowFileHeader& header);
// Throws UserError for a file that is none, is damaged, or has another length than it says.
RowFileHeader read_row_header(const ByteSource& file);

uint64_t row_chunk_hash(std::span<const std::byte> rows, int64_t chunk);

class RowFile {
 public:
  // Throws UserError, as read_row_header does, and where the file cannot be mapped.
  explicit RowFile(std::unique_ptr<ByteSource> file);

  const RowFileHeader& header() const { return header_; }
  const ByteSource& file() const { return *file_; }
  // Its bytes may be read under a guard (base/guarded_read.h), once they are checked.
  const std::byte* row(int64_t record) const { return rows_ + record * header_.row_bytes; }
  // Whether the rows around this one hold what was written. Looks at them only once: damage that comes later
  // is a changed file.
  bool check(int64_t record) const {
    const int64_t chunk = record >> chunk_shift_;
    const uint64_t bit = uint64_t{1} << (chunk % 64);
    std::atomic<uint64_t>& word = checked_[static_cast<size_t>(chunk / 64)];
    return (word.load(std::memory_order_relaxed) & bit) != 0 || check_chunk(chunk, word, bit);
  }

 private:
  bool check_chunk(int64_t chunk, std::atomic<uint64_t>& word, uint64_t bit) const;

  std::unique_ptr<ByteSource> file_;
  RowFileHeader header_;
  const std::byte* rows_ = nullptr;
  int chunk_shift_ = 0;
  mutable std::vector<std::atomic<uint64_t>> checked_;  // a bit for every chunk
};

// RowFileWriter: writes a RowFile under another name (base/new_file.h), from any number of threads, and gives
// it its own when it is complete: whoever opens that name finds all rows.
class RowFileWriter {
 public:
  // Takes the room it needs at once. Throws UserError that names the file and the bytes.
  // What is not complete when the writer goes is removed.
  RowFileWriter(const std::string& path, RowFileHeader header);

  const RowFileHeader& header() const { return header_; }
  const NewFile& file() const { return *file_; }
  // Rows from `first` on, which begin with a chunk and end with one or with the file.
  void write(int64_t first, std::span<const std::byte> rows);
  void finish();

 private:
  void write_at(int64_t offset, std::span<const std::byte> bytes);
  [[noreturn]] void fail(const UserError& error) const;

  RowFileHeader header_;
  std::vector<uint64_t> hashes_;
  std::optional<NewFile> file_;
};

}  // namespace lockstep

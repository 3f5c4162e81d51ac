#include "data/cache/row_file.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/guarded_read.h"
#include "base/number_text.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep {
namespace {

constexpr int64_t kChunkBytes = 8 << 10;
constexpr size_t kDigest = 64;
constexpr size_t kHeaderBytes = kRowsMagic.size() + 2 * kDigest + 2 * sizeof(int64_t);

void append_number(std::string& bytes, uint64_t value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

int64_t number_at(std::string_view bytes, size_t offset) {
  int64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// What goes on under a guard: only plain data.
struct ChunkCheck {
  std::span<const std::byte> rows;
  const std::byte* hash;
  const std::byte* begin;
  const std::byte* end;
  int64_t chunk;
  bool holds = false;

  static void run(void* context, GuardedRange& range) {
    auto& self = *static_cast<ChunkCheck*>(context);
    range.begin = self.begin;
    range.end = self.end;
    uint64_t expected = 0;
    std::memcpy(&expected, self.hash, sizeof expected);
    self.holds = row_chunk_hash(self.rows, self.chunk) == expected;
  }
};

}  // namespace

int64_t RowFileHeader::chunk_rows() const {
  const int64_t fitting = std::max<int64_t>(kChunkBytes / std::max<int64_t>(row_bytes, 1), 1);
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(fitting)));
}

std::string to_bytes(const RowFileHeader& header) {
  LOCKSTEP_CHECK(header.key.size() == kDigest && header.content.size() == kDigest, "keys of {} and {} digits",
                 header.key.size(), header.content.size());
  std::string bytes(kRowsMagic);
  bytes += header.key + header.content;
  append_number(bytes, static_cast<uint64_t>(header.records));
  append_number(bytes, static_cast<uint64_t>(header.row_bytes));
  append_number(bytes, XXH3_64bits(bytes.data(), bytes.size()));
  bytes.resize(static_cast<size_t>(kRowsBegin));
  return bytes;
}

RowFileHeader read_row_header(const ByteSource& file) {
  std::string bytes(kHeaderBytes + sizeof(uint64_t), '\0');
  if (file.size() < kRowsBegin) throw UserError("{}: {} bytes are no file of rows", file.name(), file.size());
  file.read(0, bytes);
  const std::string_view all = bytes;
  if (!all.starts_with(kRowsMagic)) throw UserError("{} is no file of rows of this version", file.name());
  if (static_cast<uint64_t>(number_at(all, kHeaderBytes)) != XXH3_64bits(all.data(), kHeaderBytes))
    throw UserError("{} at byte 0: the header is damaged", file.name());
  size_t at = kRowsMagic.size();
  RowFileHeader header;
  header.key = all.substr(at, kDigest);
  header.content = all.substr(at += kDigest, kDigest);
  header.records = number_at(all, at += kDigest);
  header.row_bytes = number_at(all, at + sizeof(int64_t));
  // What is claimed is compared with the file before anything is multiplied.
  if (header.records < 1 || header.row_bytes < 1 || header.records > file.size() / header.row_bytes ||
      header.file_bytes() != file.size())
    throw UserError("{} has {} bytes, which is not {} rows of {} bytes", file.name(), file.size(),
                    header.records, header.row_bytes);
  return header;
}

uint64_t row_chunk_hash(std::span<const std::byte> rows, int64_t chunk) {
  return XXH3_64bits_withSeed(rows.data(), rows.size(), static_cast<uint64_t>(chunk));
}

RowFile::RowFile(std::unique_ptr<ByteSource> file)
    : file_(std::move(file)), header_(read_row_header(*file_)) {
  rows_ = file_->mapped(kRowsBegin, header_.file_bytes() - kRowsBegin).data;
  if (rows_ == nullptr) throw UserError("{} cannot be mapped into memory", file_->name());
  chunk_shift_ = std::countr_zero(static_cast<uint64_t>(header_.chunk_rows()));
  checked_ = std::vector<std::atomic<uint64_t>>(static_cast<size_t>((header_.chunks() + 63) / 64));
}

bool RowFile::check_chunk(int64_t chunk, std::atomic<uint64_t>& word, uint64_t bit) const {
  const int64_t first = chunk << chunk_shift_;
  const int64_t count = std::min(header_.chunk_rows(), header_.records - first);
  const std::byte* const hashes = row(header_.records);
  ChunkCheck check{.rows = {row(first), static_cast<size_t>(count * header_.row_bytes)},
                   .hash = hashes + chunk * int64_t{8},
                   .begin = rows_,
                   .end = hashes + header_.chunks() * 8,
                   .chunk = chunk};
  if (!read_guarded(ChunkCheck::run, &check) || !check.holds) return false;
  word.fetch_or(bit, std::memory_order_relaxed);
  return true;
}

RowFileWriter::RowFileWriter(const std::string& path, RowFileHeader header)
    : header_(std::move(header)), hashes_(static_cast<size_t>(header_.chunks())) {
  try {
    file_.emplace(path);
    // Where the file system cannot tell, it will when bytes are written.
    if (fallocate(file_->descriptor(), 0, 0, header_.file_bytes()) != 0 && errno != EOPNOTSUPP &&
        errno != ENOSYS)
      throw UserError("cannot write {}: {}", path, std::strerror(errno));
  } catch (const UserError& error) {
    fail(error);
  }
}

void RowFileWriter::fail(const UserError& error) const {
  throw UserError("{}; the file needs {}: name another folder as data.cache_folder, or remove data.cache",
                  error.what(), bytes_text(header_.file_bytes()));
}

void RowFileWriter::write_at(int64_t offset, std::span<const std::byte> bytes) {
  try {
    file_->write_at(offset, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  } catch (const UserError& error) {
    fail(error);
  }
}

void RowFileWriter::write(int64_t first, std::span<const std::byte> rows) {
  const int64_t chunk_rows = header_.chunk_rows();
  const auto chunk_bytes = static_cast<size_t>(chunk_rows * header_.row_bytes);
  LOCKSTEP_CHECK(first % chunk_rows == 0, "rows from {} on, in chunks of {}", first, chunk_rows);
  int64_t chunk = first / chunk_rows;
  for (auto left = rows; !left.empty(); ++chunk) {
    const auto here = left.first(std::min(left.size(), chunk_bytes));
    hashes_[static_cast<size_t>(chunk)] = row_chunk_hash(here, chunk);
    left = left.subspan(here.size());
  }
  write_at(kRowsBegin + first * header_.row_bytes, rows);
}

void RowFileWriter::finish() {
  write_at(header_.rows_end(), std::as_bytes(std::span(hashes_)));
  const std::string header = to_bytes(header_);
  write_at(0, std::as_bytes(std::span(header)));
  try {
    file_->finish();
  } catch (const UserError& error) {
    fail(error);
  }
}

}  // namespace lockstep

#include "fuzz/row_file.h"

#include <algorithm>

#include "base/error.h"
#include "data/cache/row_file.h"
#include "fuzz/repair.h"

namespace lockstep::testing {
namespace {

// A text as if it were a file that is mapped.
class MappedText : public ByteSource {
 public:
  explicit MappedText(std::string_view text) : ByteSource("rows"), text_(text) {}

  int64_t size() const override { return static_cast<int64_t>(text_.size()); }
  void read(int64_t offset, std::span<char> out) const override {
    LOCKSTEP_CHECK(offset >= 0 && offset + static_cast<int64_t>(out.size()) <= size(), "bytes from {}",
                   offset);
    std::copy_n(text_.data() + offset, out.size(), out.data());
  }
  Mapped mapped(int64_t offset, int64_t bytes) const override {
    LOCKSTEP_CHECK(offset >= 0 && bytes > 0 && bytes <= size() - offset, "{} bytes from {}", bytes, offset);
    return {reinterpret_cast<const std::byte*>(text_.data()) + offset, this, offset};
  }
  std::string stamp() const override { return "text"; }

 private:
  std::string_view text_;
};

bool check(std::string_view bytes) {
  try {
    const RowFile file(std::make_unique<MappedText>(bytes));
    const RowFileHeader& header = file.header();
    LOCKSTEP_CHECK(bytes.starts_with(std::string_view(to_bytes(header)).substr(0, 168)), "another header");
    for (int64_t record = 0; record < header.records; ++record) {
      const bool holds = file.check(record);
      const int64_t chunk = record / header.chunk_rows();
      const int64_t first = chunk * header.chunk_rows();
      const int64_t count = std::min(header.chunk_rows(), header.records - first);
      uint64_t hash = 0;
      std::copy_n(bytes.data() + header.rows_end() + chunk * 8, 8, reinterpret_cast<char*>(&hash));
      const auto rows = std::as_bytes(std::span(bytes))
                            .subspan(static_cast<size_t>(kRowsBegin + first * header.row_bytes),
                                     static_cast<size_t>(count * header.row_bytes));
      LOCKSTEP_CHECK(holds == (row_chunk_hash(rows, chunk) == hash), "chunk {}", chunk);
    }
  } catch (const UserError&) {
    return false;
  }
  return true;
}

}  // namespace

bool check_row_file(std::string_view bytes) {
  if (check(bytes)) return true;
  check(repaired_row_file(bytes));
  return false;
}

}  // namespace lockstep::testing

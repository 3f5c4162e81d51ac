// MappedPage: a page, or a part of one, of a file that is mapped into memory, read where it lies. A file that
// becomes shorter meanwhile ends such a read, not the process.
#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/guarded_read.h"
#include "data/format/byte_source.h"
#include "data/format/parquet/pages.h"

namespace lockstep::parquet {

class MappedPage {
 public:
  // Nothing where the file cannot be mapped.
  static std::optional<MappedPage> of(const ByteSource& file, const PageSpan& span) {
    const ByteSource::Mapped found = file.mapped(span.offset, span.bytes);
    if (found.data == nullptr) return {};
    return MappedPage({reinterpret_cast<const char*>(found.data), static_cast<size_t>(span.bytes)});
  }

  explicit MappedPage(std::string_view bytes) : bytes_(bytes) {}

  size_t size() const { return bytes_.size(); }

  // Calls read(bytes of the page). False: they cannot be read, and the call was left somewhere: it must
  // neither throw nor own anything. What was read holds once the file was asked whether it has changed.
  template <typename Read>
  bool read(const Read& read) const {
    struct Call {
      std::string_view bytes;
      const Read& read;
    } call{bytes_, read};
    return read_guarded(
        [](void* context, GuardedRange& range) {
          const Call& made = *static_cast<const Call*>(context);
          range.begin = reinterpret_cast<const std::byte*>(made.bytes.data());
          range.end = range.begin + made.bytes.size();
          made.read(made.bytes);
        },
        &call);
  }

 private:
  std::string_view bytes_;
};

}  // namespace lockstep::parquet

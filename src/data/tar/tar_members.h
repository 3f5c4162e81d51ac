// The members of a tar archive, one after another: ustar, GNU (long names, sizes beyond 8 GiB) and pax (path
// and size). Only headers are read, and every one of them is checked.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/bytes/byte_source.h"
#include "data/format/format.h"

namespace lockstep {

struct TarMember {
  std::string name;
  int64_t header = 0;             // its first byte
  int64_t offset = 0, bytes = 0;  // of what it holds
};

class TarMembers {
 public:
  explicit TarMembers(const ByteSource& archive) : archive_(archive) {}

  // The next plain file; nothing: the end mark was reached. Throws UserError that names archive and byte for
  // a damaged header, and for an archive that is cut.
  std::optional<TarMember> next();
  int64_t offset() const { return offset_; }  // of what would be read next

 private:
  [[noreturn]] void refuse(int64_t offset, const std::string& problem) const;
  // The content of a header that describes the next one.
  std::string long_text(int64_t offset, int64_t bytes) const;

  const ByteSource& archive_;
  int64_t offset_ = 0;
};

// Tar shards of images in WebDataset naming: neighbouring members whose names agree up to the first dot after
// the last slash are one record. It has one image (.jpg, .jpeg, .png) and one class: .cls holds it as text,
// .json under the key label, cls or class. Other members of a record are passed over.
std::unique_ptr<Format> make_tar_format(const FormatOptions& options);

}  // namespace lockstep

// The frame of a record in a TFRecord file: 8 bytes of length, a crc of these, the content, a crc of that.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/crc32c.h"

namespace lockstep {

inline constexpr int64_t kTfrecordHeader = 12;  // before the content
inline constexpr int64_t kTfrecordTrailer = 4;  // behind it

inline uint32_t tfrecord_crc_at(const char* at) {
  uint32_t crc = 0;
  std::memcpy(&crc, at, sizeof crc);
  return crc;
}

// The length that the 12 bytes of a header give; -1: their crc is wrong, or no length can be that large.
inline int64_t tfrecord_length(const char* header) {
  int64_t length = 0;
  std::memcpy(&length, header, sizeof length);
  return masked_crc32c({header, 8}) == tfrecord_crc_at(header + 8) && length >= 0 ? length : -1;
}

// Whether the crc behind the content is its own.
inline bool tfrecord_content_holds(std::string_view content) {
  return masked_crc32c(content) == tfrecord_crc_at(content.data() + content.size());
}

inline void append_tfrecord(std::string_view content, std::string& out) {
  char header[kTfrecordHeader];
  const uint64_t length = content.size();
  std::memcpy(header, &length, 8);
  const uint32_t crc = masked_crc32c({header, 8});
  std::memcpy(header + 8, &crc, 4);
  out.append(header, sizeof header).append(content);
  const uint32_t trailer = masked_crc32c(content);
  out.append(reinterpret_cast<const char*>(&trailer), 4);
}

}  // namespace lockstep

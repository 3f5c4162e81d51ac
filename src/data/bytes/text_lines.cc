#include "data/bytes/text_lines.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr int64_t kBehind = 64;

}  // namespace

std::optional<TextLines::Piece> TextLines::next(const WholeRecords& whole) {
  const int64_t left = shard_.size() - offset_;
  if (left == 0) return {};
  for (int64_t wanted = piece_;; wanted *= 2) {
    const int64_t length = std::min(wanted, left);
    buffer_.resize(static_cast<size_t>(length + kBehind));
    shard_.read(offset_, std::span(buffer_).first(static_cast<size_t>(length)));
    std::fill(buffer_.end() - kBehind, buffer_.end(), '\0');
    const std::string_view text(buffer_.data(), static_cast<size_t>(length));
    const bool last = length == left;
    const auto consumed = static_cast<int64_t>(whole(text, last));
    Piece piece{offset_, text, consumed, last, consumed == 0};
    if (consumed > 0) {
      piece_ = std::min(kPiece, 2 * wanted);
      offset_ += consumed;
      return piece;
    }
    if (last || wanted >= longest_) return piece;
  }
}

void TextLines::skip_record(const RecordEnd& end) {
  bool inside = false;
  while (offset_ < shard_.size()) {
    buffer_.resize(static_cast<size_t>(std::min(kPiece, shard_.size() - offset_)));
    shard_.read(offset_, buffer_);
    const size_t found = end(buffer_, inside);
    offset_ += static_cast<int64_t>(std::min(found, buffer_.size()));
    if (found != std::string_view::npos) return;
  }
}

int64_t line_number(const ByteSource& shard, int64_t offset) {
  constexpr int64_t kPiece = int64_t{1} << 20;
  int64_t line = 1;
  std::string buffer;
  for (int64_t at = 0; at < offset; at += kPiece) {
    buffer.resize(static_cast<size_t>(std::min(kPiece, offset - at)));
    shard.read(at, buffer);
    line += std::count(buffer.begin(), buffer.end(), '\n');
  }
  return line;
}

void refuse_line(const ByteSource& shard, int64_t offset, std::string_view problem) {
  throw UserError("{}:{}: {} (byte {})", shard.name(), line_number(shard, offset), problem, offset);
}

}  // namespace lockstep

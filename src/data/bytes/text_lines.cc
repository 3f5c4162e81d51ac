#include "data/bytes/text_lines.h"

#include <algorithm>
#include <array>

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

int64_t text_begin(const ByteSource& shard) {
  std::array<char, 4> bytes{};
  const auto read = static_cast<size_t>(std::min<int64_t>(shard.size(), std::ssize(bytes)));
  if (read == 0) return 0;
  shard.read(0, std::span(bytes).first(read));
  const std::string_view begin(bytes.data(), read);
  using namespace std::string_view_literals;
  if (begin.starts_with("\xef\xbb\xbf")) return 3;
  const auto zero = [&](size_t i) { return begin[i] == '\0'; };
  const bool whole = begin.size() == bytes.size();
  const bool zeros_behind = whole && !zero(0) && zero(1) && !zero(2) && zero(3);
  const bool zeros_before = whole && zero(0) && !zero(1) && zero(2) && !zero(3);
  const char* other = begin.starts_with("\xff\xfe\0\0"sv) || begin.starts_with("\0\0\xfe\xff"sv) ? "UTF-32"
                      : begin.starts_with("\xff\xfe") || zeros_behind                            ? "UTF-16LE"
                      : begin.starts_with("\xfe\xff") || zeros_before                            ? "UTF-16BE"
                                                                                                 : nullptr;
  if (other != nullptr)
    throw UserError("{}: the text is {}, and must be UTF-8; convert it: iconv -f {} -t UTF-8", shard.name(),
                    other, other);
  return 0;
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

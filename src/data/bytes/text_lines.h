// TextLines: a shard read piece by piece, each piece a number of whole records, in little memory.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "data/bytes/byte_source.h"

namespace lockstep {

class TextLines {
 public:
  // Longer records are refused unless more is allowed: mostly a quote that was never closed.
  static constexpr int64_t kLongestRecord = int64_t{1} << 24;

  struct Piece {
    int64_t offset = 0;     // in the shard
    std::string_view text;  // valid until the next call
    int64_t consumed = 0;   // how much of the text the whole records take
    bool last = false;      // the text ends where the shard does
    bool too_long = false;  // the record that begins here is: skip_record()
  };
  // Says how many bytes of a text are whole records; the text is the end of the shard if `last`. 64 bytes
  // behind the text can be read.
  using WholeRecords = std::function<size_t(std::string_view text, bool last)>;
  // The position behind the end of a record that began earlier, or npos; `inside` is kept between calls.
  using RecordEnd = std::function<size_t(std::string_view text, bool& inside)>;

  TextLines(const ByteSource& shard, int64_t offset, int64_t longest = kLongestRecord)
      : shard_(shard), offset_(offset), longest_(longest) {}

  // Nothing at the end of the shard.
  std::optional<Piece> next(const WholeRecords& whole);
  int64_t offset() const { return offset_; }  // of the next piece
  // Goes on behind the record that was too long.
  void skip_record(const RecordEnd& end);
  // The next piece is short, since this may come again soon, and what was read ahead is lost every time.
  void skip_to(int64_t offset) {
    offset_ = offset;
    piece_ = kShortPiece;
  }

 private:
  static constexpr int64_t kPiece = int64_t{1} << 20;
  static constexpr int64_t kShortPiece = int64_t{1} << 12;

  const ByteSource& shard_;
  int64_t offset_;
  int64_t longest_;
  int64_t piece_ = kPiece;
  std::string buffer_;
};

// Where the text of a shard begins: behind the byte-order mark of UTF-8, where it has one. Throws UserError
// for UTF-16 and UTF-32, by their marks or by the zeros between the first letters.
int64_t text_begin(const ByteSource& shard);

// The number of the line that holds this byte, from 1. Reads the shard up to there: for messages only.
int64_t line_number(const ByteSource& shard, int64_t offset);
// Throws UserError: what is wrong with the line of a shard that begins at this byte.
[[noreturn]] void refuse_line(const ByteSource& shard, int64_t offset, std::string_view problem);

}  // namespace lockstep

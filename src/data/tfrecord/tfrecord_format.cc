#include "data/tfrecord/tfrecord_format.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "data/bytes/text_lines.h"
#include "data/bytes/tfrecord_frame.h"
#include "data/records/record_format.h"

namespace lockstep {
namespace {

constexpr const char* kBadLength = "the crc of the record's length is wrong; the file is damaged here";
constexpr const char* kBadContent = "the record's crc is wrong; the file is damaged here";
constexpr const char* kCut = "the file ends in the middle of a record; it was cut, or is still being written";

// What is known about records by looking at headers.
struct Framing {
  int64_t size = 0;     // of the shard
  int64_t longest = 0;  // that a record may be, with its frame

  // The length of a record with its frame, by its header; nothing: the header does not hold.
  static std::optional<int64_t> record_bytes(const char* header) {
    constexpr int64_t kImpossible = int64_t{1} << 50;
    const int64_t content = tfrecord_length(header);
    if (content < 0 || content > kImpossible) return {};
    return kTfrecordHeader + content + kTfrecordTrailer;
  }
  // Where a header first holds in a text that lies at `offset`, from position `from` on; npos: nowhere.
  size_t next_header(std::string_view text, int64_t offset, size_t from) const {
    for (size_t at = from; at + kTfrecordHeader <= text.size(); ++at) {
      const auto bytes = record_bytes(text.data() + at);
      if (bytes && *bytes <= longest && offset + static_cast<int64_t>(at) + *bytes <= size) return at;
    }
    return std::string_view::npos;
  }
};

[[noreturn]] void refuse_record(const ByteSource& shard, int64_t offset, std::string_view problem) {
  throw UserError("{} at byte {}: {}", shard.name(), offset, problem);
}

class TfrecordDecoder : public ShardDecoder {
 public:
  TfrecordDecoder(const ByteSource& shard, const ShardIndex& index, int64_t longest)
      : ShardDecoder(shard, index), framing_{shard.size(), longest} {}

  void decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const override {
    RecordSink sink(block, count);
    const GranuleSpan span = span_of(index(), first, count);
    for_each_record(fetch.read(span.offset, span.bytes), span, first, count,
                    [&](int64_t offset, std::string_view content) {
                      if (!tfrecord_content_holds(content)) refuse_record(bytes(), offset, kBadContent);
                      try {
                        read_example(content, sink);
                      } catch (const RecordProblem& problem) {
                        refuse_record(bytes(), offset, problem.what());
                      }
                    });
    sink.finish();
  }

  std::string describe(int64_t record) const override {
    const GranuleSpan span = span_of(index(), record, 1);
    std::string text(static_cast<size_t>(span.bytes), '\0');
    bytes().read(span.offset, text);
    int64_t found = span.offset;
    for_each_record(text, span, record, 1, [&](int64_t offset, std::string_view) { found = offset; });
    return fmt::format("{} record {} at byte {}", bytes().name(), record, found);
  }

 private:
  // Calls take(offset, content) for records [first, first + count); behind the content stands its crc.
  template <typename Take>
  void for_each_record(std::string_view text, const GranuleSpan& span, int64_t first, int64_t count,
                       const Take& take) const {
    int64_t number = span.first;
    size_t at = 0;
    while (number < first + count) {
      const int64_t offset = span.offset + static_cast<int64_t>(at);
      const std::string_view left = text.substr(at);
      if (left.size() < kTfrecordHeader)
        refuse_record(bytes(), offset,
                      "fewer records than the index has; the file has changed since it was indexed");
      const bool bad = !index().bad.empty() && index().is_bad(offset);
      const auto length = Framing::record_bytes(left.data());
      const bool whole = length && *length <= static_cast<int64_t>(left.size());
      if (!whole && !bad) refuse_record(bytes(), offset, kBadLength);
      if (!length) {
        at += std::min(framing_.next_header(left, offset, 1), left.size());
        continue;
      }
      const auto bytes = std::min(static_cast<size_t>(*length), left.size());
      if (!bad) {
        if (number >= first)
          take(offset, left.substr(kTfrecordHeader, bytes - kTfrecordHeader - kTfrecordTrailer));
        ++number;
      }
      at += bytes;
    }
  }

  Framing framing_;
};

// Looks through a shard record by record, in little memory.
class TfrecordScan {
 public:
  TfrecordScan(const ByteSource& shard, int64_t longest)
      : shard_(shard), framing_{shard.size(), longest}, lines_(shard, 0, longest) {}

  // As RecordFormat::scan has it.
  template <typename Record, typename After>
  void run(const Record& record, const After& after) {
    const auto whole = [this](std::string_view text, bool) { return whole_records(text); };
    while (const auto piece = lines_.next(whole)) {
      if (piece->too_long) {
        if (!record(piece->offset, std::string_view(), problem_of_record(*piece))) return;
        lines_.skip_to(next_record(*piece));
        continue;
      }
      for (size_t at = 0; at < static_cast<size_t>(piece->consumed);) {
        const std::string_view left = piece->text.substr(at);
        const auto bytes = static_cast<size_t>(*Framing::record_bytes(left.data()));
        const std::string_view content =
            left.substr(kTfrecordHeader, bytes - kTfrecordHeader - kTfrecordTrailer);
        if (!record(piece->offset + static_cast<int64_t>(at), content, nullptr)) return;
        at += bytes;
      }
      after(piece->consumed);
    }
  }

 private:
  size_t whole_records(std::string_view text) const {
    size_t at = 0;
    while (text.size() - at >= kTfrecordHeader) {
      const auto bytes = Framing::record_bytes(text.data() + at);
      if (!bytes || *bytes > framing_.longest || *bytes > static_cast<int64_t>(text.size() - at)) break;
      at += static_cast<size_t>(*bytes);
    }
    return at;
  }

  static std::optional<int64_t> bytes_of(const TextLines::Piece& piece) {
    return piece.text.size() < kTfrecordHeader ? std::nullopt : Framing::record_bytes(piece.text.data());
  }

  const char* problem_of_record(const TextLines::Piece& piece) const {
    const auto bytes = bytes_of(piece);
    if (!bytes) return piece.text.size() < kTfrecordHeader ? kCut : kBadLength;
    return piece.offset + *bytes > framing_.size ? kCut : too_long_.c_str();
  }

  // Behind a record that cannot be used: by its length, or where a header holds again.
  int64_t next_record(const TextLines::Piece& piece) const {
    if (const auto bytes = bytes_of(piece)) return std::min(piece.offset + *bytes, framing_.size);
    constexpr int64_t kPiece = int64_t{1} << 20;
    std::string text;
    for (int64_t offset = piece.offset + 1; offset < framing_.size; offset += kPiece) {
      // A header may begin in one piece and end in the next.
      text.resize(static_cast<size_t>(std::min(kPiece + kTfrecordHeader - 1, framing_.size - offset)));
      shard_.read(offset, text);
      const size_t found = framing_.next_header(text, offset, 0);
      if (found != std::string_view::npos) return offset + static_cast<int64_t>(found);
    }
    return framing_.size;
  }

  const ByteSource& shard_;
  Framing framing_;
  TextLines lines_;
  std::string too_long_ =
      fmt::format("the record is longer than the {} bytes that longest_record allows", framing_.longest);
};

class TfrecordFormat : public RecordFormat {
 public:
  explicit TfrecordFormat(const FormatOptions& options) : RecordFormat("tfrecord", options) {}

  int version() const override { return 2; }
  std::string_view suffix() const override { return ".tfrecord"; }

  std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const override {
    return std::make_unique<TfrecordDecoder>(shard, index, longest());
  }

 private:
  void scan(const ByteSource& shard, const TakeRecord& record,
            const std::function<void(int64_t bytes)>& after) const override {
    TfrecordScan(shard, longest()).run(record, after);
  }
  const char* damage_of(std::string_view content) const override {
    return tfrecord_content_holds(content) ? nullptr : kBadContent;
  }
  void survey(std::string_view content, FieldSurvey& survey) const override {
    survey_example(content, survey);
  }
  void read(std::string_view content, RecordSink& sink) const override { read_example(content, sink); }
  [[noreturn]] void refuse(const ByteSource& shard, int64_t offset, std::string_view problem) const override {
    refuse_record(shard, offset, problem);
  }

  // In its own type; several kinds under one name are doubles if all are numbers, and text otherwise.
  BlockField field_of(const FieldSurvey::Seen& seen) const override {
    const ValueType type = seen.text                 ? ValueType::kBytes
                           : seen.whole && seen.real ? ValueType::kF64
                           : seen.whole              ? ValueType::kI64
                                                     : ValueType::kF32;
    return {seen.name, type, seen.most < 0 ? 1 : seen.fewest == seen.most ? seen.most : kVarying};
  }
  BlockField exact_field_of(const FieldSurvey::Seen& seen) const override {
    BlockField field = field_of(seen);
    if (seen.real && seen.beyond_double) field.type = ValueType::kBytes;
    return field;
  }
};

}  // namespace

std::unique_ptr<Format> make_tfrecord_format(const FormatOptions& options) {
  return std::make_unique<TfrecordFormat>(options);
}

}  // namespace lockstep

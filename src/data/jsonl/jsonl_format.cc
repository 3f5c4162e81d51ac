#include "data/jsonl/jsonl_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "data/bytes/text_lines.h"
#include "data/jsonl/json_line.h"
#include "data/records/record_format.h"

namespace lockstep {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

JsonLineReader& line_reader() {
  thread_local JsonLineReader reader;
  return reader;
}

struct Line {
  size_t begin = 0;       // in the text
  std::string_view text;  // without its end
};

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

// Calls take(line) for the lines of a text that are not blank, until it gives false. `offset` is that of the
// text in its shard.
template <typename Take>
void for_each_line(std::string_view text, int64_t offset, const Take& take) {
  size_t at = offset == 0 && text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (at < text.size()) {
    const auto* found = static_cast<const char*>(std::memchr(text.data() + at, '\n', text.size() - at));
    const size_t end = found == nullptr ? text.size() : static_cast<size_t>(found - text.data());
    const Line line{at, text.substr(at, end - at)};
    at = end + 1;
    const bool opens = !line.text.empty() && line.text[0] == '{';
    if (!opens && is_blank(line.text)) continue;
    if (!take(line)) return;
  }
}

class JsonlDecoder : public ShardDecoder {
 public:
  JsonlDecoder(const ByteSource& shard, const ShardIndex& index) : ShardDecoder(shard, index) {}

  void decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const override {
    RecordSink sink(block, count);
    JsonLineReader& reader = line_reader();
    const GranuleSpan span = span_of(index(), first, count);
    for_each_record(fetch.read(span.offset, span.bytes), span, first, count, [&](const Line& line) {
      try {
        reader.read(line.text, sink);
      } catch (const RecordProblem& problem) {
        refuse_line(bytes(), span.offset + static_cast<int64_t>(line.begin), problem.what());
      }
    });
    sink.finish();
  }

  std::string describe(int64_t record) const override {
    const GranuleSpan span = span_of(index(), record, 1);
    std::string text(static_cast<size_t>(span.bytes), '\0');
    bytes().read(span.offset, text);
    int64_t line = 0;
    for_each_record(text, span, record, 1, [&](const Line& found) {
      line = line_number(bytes(), span.offset + static_cast<int64_t>(found.begin));
    });
    return fmt::format("{}:{}", bytes().name(), line);
  }

 private:
  template <typename Take>
  void for_each_record(std::string_view text, const GranuleSpan& span, int64_t first, int64_t count,
                       const Take& take) const {
    int64_t number = span.first;
    for_each_line(text, span.offset, [&](const Line& line) {
      if (!index().bad.empty() && index().is_bad(span.offset + static_cast<int64_t>(line.begin))) return true;
      if (number >= first) take(line);
      return ++number < first + count;
    });
    if (number < first + count)
      refuse_line(bytes(), span.offset,
                  "fewer records than the index has; the file has changed since it was indexed");
  }
};

class JsonlFormat : public RecordFormat {
 public:
  explicit JsonlFormat(const FormatOptions& options) : RecordFormat("jsonl", options) {}

  int version() const override { return 3; }
  std::string_view suffix() const override { return ".jsonl"; }

  std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const override {
    return std::make_unique<JsonlDecoder>(shard, index);
  }

 private:
  void scan(const ByteSource& shard, const TakeRecord& record,
            const std::function<void(int64_t bytes)>& after) const override {
    text_begin(shard);  // refuses what is not UTF-8; the mark is passed over with the first line
    TextLines lines(shard, 0, longest());
    const auto whole = [&](std::string_view text, bool last) {
      const size_t end = last ? text.size() : text.rfind('\n') + 1;  // npos + 1 is 0
      // A line that is too long stands alone, to be passed over.
      size_t at = 0;
      while (at < end) {
        const size_t found = std::min(text.find('\n', at), end);
        if (static_cast<int64_t>(found - at) > longest()) break;
        at = found + 1;
      }
      return std::min(at, end);
    };
    while (const auto piece = lines.next(whole)) {
      if (piece->too_long) {
        if (!record(piece->offset, std::string_view(), too_long_.c_str())) return;
        lines.skip_record([](std::string_view text, bool&) {
          const size_t found = text.find('\n');
          return found == std::string_view::npos ? found : found + 1;
        });
        continue;
      }
      bool more = true;
      for_each_line(piece->text.substr(0, static_cast<size_t>(piece->consumed)), piece->offset,
                    [&](const Line& line) {
                      more = record(piece->offset + static_cast<int64_t>(line.begin), line.text, nullptr);
                      return more;
                    });
      if (!more) return;
      after(piece->consumed);
    }
  }

  void survey(std::string_view content, FieldSurvey& survey) const override {
    line_reader().survey(content, survey);
  }
  void read(std::string_view content, RecordSink& sink) const override { line_reader().read(content, sink); }
  [[noreturn]] void refuse(const ByteSource& shard, int64_t offset, std::string_view problem) const override {
    refuse_line(shard, offset, problem);
  }

  // Numbers are f64, which takes whatever number comes later, unless it could not hold those that were seen.
  BlockField field_of(const FieldSurvey::Seen& seen) const override {
    return field_of(seen, seen.beyond_double && !seen.real ? ValueType::kI64 : ValueType::kF64);
  }
  BlockField exact_field_of(const FieldSurvey::Seen& seen) const override {
    const bool mixed = seen.real && seen.beyond_double;
    return field_of(seen, mixed || seen.beyond_whole ? ValueType::kBytes
                          : seen.real                ? ValueType::kF64
                                                     : ValueType::kI64);
  }
  static BlockField field_of(const FieldSurvey::Seen& seen, ValueType of_numbers) {
    const bool number = seen.whole || seen.real;
    const ValueType type = seen.text || seen.most < 0 || (number && seen.truth) ? ValueType::kBytes
                           : seen.truth                                         ? ValueType::kU8
                                                                                : of_numbers;
    const int64_t width = !seen.list ? 1 : seen.fewest == seen.most && seen.most > 1 ? seen.most : kVarying;
    // Now a list, now a single value: as it is written.
    if (seen.list && seen.fewest == 1 && seen.most >= 1) return {seen.name, ValueType::kBytes, 1};
    return {seen.name, type, width};
  }

  std::string too_long_ = fmt::format(
      "the line is longer than the {} bytes that longest_record allows; is a line end missing?", longest());
};

}  // namespace

std::unique_ptr<Format> make_jsonl_format(const FormatOptions& options) {
  return std::make_unique<JsonlFormat>(options);
}

}  // namespace lockstep

#include <simdjson.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/bytes/text_lines.h"
#include "data/csv/csv_check.h"
#include "data/format/value_text.h"

namespace lockstep {
namespace {

// What one thread decodes with, used again from call to call.
struct Scratch {
  CsvScan scan;
  std::vector<uint32_t> fields;  // for each record, the number of its first field in the text
};

// A text of a shard while it is decoded.
struct Decoding {
  std::string_view text;
  int64_t offset;  // of the text
  const CsvScan& scan;
  ColumnBlock& block;
  bool invalid_utf8;  // somewhere in the text

  int64_t offset_of(uint32_t first_field) const {
    return offset + static_cast<uint32_t>(scan.marks()[first_field] + 1);
  }
};

class CsvDecoder : public ShardDecoder {
 public:
  CsvDecoder(const ByteSource& shard, const ShardIndex& index, const CsvHeader& header,
             std::vector<CsvWanted> wanted, const MissingTexts& missing, const CsvLoops& loops)
      : ShardDecoder(shard, index),
        separator_(header.separator),
        loops_(loops),
        fields_(header.names.size()),
        wanted_(wanted),
        missing_(missing),
        check_(header, std::move(wanted), missing) {}

  void decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const override {
    thread_local Scratch scratch;
    const GranuleSpan span = span_of(index(), first, count);
    const std::string_view text = fetch.read(span.offset, span.bytes);
    find_records(text, span, first, count, scratch);
    // A text that is valid as a whole is so between any two of its separators.
    const bool invalid = scratch.scan.non_ascii() && !simdjson::validate_utf8(text);
    const Decoding decoding{text, span.offset, scratch.scan, block, invalid};
    const std::span<const uint32_t> fields = scratch.fields;
    for (BlockColumn& column : block.columns) make_room(column, fields.size());
    for (size_t first = 0; first < fields.size(); first += kCsvRows) {
      const auto rows = fields.subspan(first, std::min(kCsvRows, fields.size() - first));
      const size_t at = static_cast<size_t>(block.records) + first;
      for (size_t i = 0; i < wanted_.size(); ++i)
        std::visit(
            [&](auto& values) { decode_rows(decoding, rows, wanted_[i], at, block.columns[i], values); },
            block.columns[i].values);
    }
    block.records += count;
  }

  std::string describe(int64_t record) const override {
    const GranuleSpan span = span_of(index(), record, 1);
    std::string text(static_cast<size_t>(span.bytes + Fetch::kPadding), '\0');
    bytes().read(span.offset, std::span(text).first(static_cast<size_t>(span.bytes)));
    Scratch scratch;
    find_records(std::string_view(text).substr(0, static_cast<size_t>(span.bytes)), span, record, 1, scratch);
    const uint32_t begin = scratch.scan.marks()[scratch.fields[0]] + 1;
    return fmt::format("{}:{}", bytes().name(), line_number(bytes(), span.offset + begin));
  }

 private:
  // Where records [first, first + count) lie in the text.
  void find_records(std::string_view text, const GranuleSpan& span, int64_t first, int64_t count,
                    Scratch& scratch) const {
    CsvScan& scan = scratch.scan;
    scan.look(text, separator_, span.offset + span.bytes == bytes().size(), loops_);
    scratch.fields.clear();
    int64_t number = span.first;
    for (size_t i = 0; i < scan.lines() && number < first + count; ++i) {
      const CsvLine line = scan.line(i);
      if (line.blank()) continue;
      if (!index().bad.empty() && index().is_bad(span.offset + line.begin)) continue;
      if (number >= first) {
        if (line.fields() != fields_)
          refuse_line(bytes(), span.offset + line.begin, *check_.count_problem(line));
        scratch.fields.push_back(scan.first_field(i));
      }
      ++number;
    }
    if (number < first + count)
      refuse_line(bytes(), span.offset,
                  "fewer records than the index has; the file has changed since it was indexed");
  }

  static void make_room(BlockColumn& column, size_t records) {
    std::visit([&](auto& values) { values.resize(values.size() + records); }, column.values);
    if (!column.missing.empty()) column.missing.resize(column.missing.size() + records);
  }

  CsvColumn column_of(const Decoding& decoding, std::span<const uint32_t> rows,
                      const CsvWanted& wanted) const {
    return {.text = decoding.text.data(),
            .size = decoding.text.size(),
            .marks = decoding.scan.marks(),
            .fields = rows.data(),
            .records = rows.size(),
            .place = wanted.field,
            .last = wanted.field + 1 == fields_};
  }

  static std::string_view raw_of(const CsvColumn& column, size_t row) {
    const uint32_t* mark = column.marks + column.fields[row] + column.place;
    const uint32_t from = mark[0] + 1;
    uint32_t to = mark[1];
    if (column.last && to > from && to < column.size && column.text[to - 1] == '\r') --to;
    return {column.text + from, to - from};
  }

  // The values of some rows, the first of which is record `at` of the block.
  void decode_rows(const Decoding& decoding, std::span<const uint32_t> rows, const CsvWanted& wanted,
                   size_t at, BlockColumn&, std::vector<std::string_view>& values) const {
    const CsvColumn column = column_of(decoding, rows, wanted);
    std::string_view* out = values.data() + at;
    for (size_t r = 0; r < rows.size(); ++r) out[r] = raw_of(column, r);
    const bool quotes = decoding.scan.quotes();
    if (!quotes && !decoding.invalid_utf8) return;
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::string_view raw = out[r];
      const bool quote = quotes && raw.find('"') != std::string_view::npos;
      if (!quote && !decoding.invalid_utf8) continue;
      if (const auto problem = check_.value_problem(raw, wanted.column, decoding.invalid_utf8))
        refuse_line(bytes(), decoding.offset_of(rows[r]), *problem);
      if (!quote) continue;
      auto unescaped = std::make_shared<std::string>();
      out[r] = unquote(raw, *unescaped);
      if (out[r].data() == unescaped->data()) decoding.block.keep.push_back(std::move(unescaped));
    }
  }

  template <typename T>
  void decode_rows(const Decoding& decoding, std::span<const uint32_t> rows, const CsvWanted& wanted,
                   size_t at, BlockColumn& into, std::vector<T>& values) const {
    const CsvColumn column = column_of(decoding, rows, wanted);
    std::array<uint32_t, kCsvRows> left;
    const size_t closer = read_plain(column, values.data() + at, left.data());
    for (size_t i = 0; i < closer; ++i) {
      const std::string_view raw = raw_of(column, left[i]);
      const size_t record = at + left[i];
      const bool well_written = !decoding.scan.quotes() || problem_of(raw) == nullptr;
      std::string unescaped;
      const std::string_view field = well_written ? unquote(raw, unescaped) : raw;
      if (const auto value = well_written ? value_of<T>(field) : std::nullopt) {
        values[record] = *value;
      } else if (well_written && missing_.has_for_number(field)) {
        values[record] = T{};
        into.missing.resize(values.size());
        into.missing[record] = 1;
      } else {
        refuse_line(bytes(), decoding.offset_of(rows[left[i]]),
                    *check_.value_problem(raw, wanted.column, true));
      }
    }
  }

  template <typename T>
  static std::optional<T> value_of(std::string_view field) {
    if constexpr (std::is_integral_v<T>) {
      if (const auto whole = integer_of(field)) return static_cast<T>(*whole);
    } else {
      if (const auto real = parse_number(field)) return static_cast<T>(*real);
    }
    return {};
  }

  // The numbers that are easily read; returns how many are left to look at.
  template <typename T>
  size_t read_plain(const CsvColumn& column, T* out, uint32_t* left) const {
    using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    if constexpr (std::is_same_v<T, double>) {
      return loops_.reals(column, out, left);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return loops_.wholes(column, out, left);
    } else {
      std::array<Wide, kCsvRows> wide;
      const size_t count = read_plain(column, wide.data(), left);
      std::transform(wide.begin(), wide.begin() + column.records, out,
                     [](Wide w) { return static_cast<T>(w); });
      return count;
    }
  }

  char separator_;
  const CsvLoops& loops_;
  size_t fields_;
  std::vector<CsvWanted> wanted_;
  const MissingTexts& missing_;
  CsvCheck check_;
};

}  // namespace

std::unique_ptr<ShardDecoder> make_csv_decoder(const ByteSource& shard, const ShardIndex& index,
                                               const CsvHeader& header, std::vector<CsvWanted> wanted,
                                               const MissingTexts& missing, const CsvLoops& loops) {
  return std::make_unique<CsvDecoder>(shard, index, header, std::move(wanted), missing, loops);
}

}  // namespace lockstep

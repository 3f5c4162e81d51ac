#include "data/format/csv_format.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/nearest.h"
#include "data/csv_encoding.h"
#include "data/format/csv_record.h"
#include "data/format/csv_scan.h"
#include "data/format/growing_granules.h"
#include "data/format/text_lines.h"

namespace lockstep {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

std::vector<std::string> names_in(const CsvLine& header, const ByteSource& shard) {
  std::vector<std::string> names;
  std::string unescaped;
  for (size_t i = 0; i < header.fields(); ++i) {
    const std::string_view raw = header.raw(i);
    if (const char* problem = problem_of(raw)) throw UserError("{}:1: {}", shard.name(), problem);
    std::string name(unquote(raw, unescaped));
    if (i == 0 && name.starts_with(kByteOrderMark)) name.erase(0, kByteOrderMark.size());
    if (std::find(names.begin(), names.end(), name) != names.end())
      throw UserError("{}:1: two columns are called '{}'; rename one", shard.name(), name);
    names.push_back(std::move(name));
  }
  return names;
}

size_t position_of(const std::vector<std::string>& header, const std::string& column,
                   const ByteSource& shard) {
  const auto found = std::find(header.begin(), header.end(), column);
  if (found != header.end()) return static_cast<size_t>(found - header.begin());
  const std::vector<std::string_view> known(header.begin(), header.end());
  throw UserError("{}:1: there is no column '{}'; {}", shard.name(), column, suggestion(column, known));
}

// A wanted column: which field of a line it is, and what it holds.
struct Wanted {
  size_t field = 0;
  BlockField column;
};

// The first line of a shard.
struct Header {
  std::vector<std::string> names;
  int64_t end = 0;  // the offset behind it

  std::vector<Wanted> wanted(const std::vector<BlockField>& columns, const ByteSource& shard) const {
    std::vector<Wanted> wanted;
    if (columns.empty())
      for (size_t i = 0; i < names.size(); ++i) wanted.push_back({i, {names[i], ValueType::kBytes, 1}});
    for (const BlockField& column : columns)
      wanted.push_back({position_of(names, column.name, shard), column});
    return wanted;
  }
};

// Says of a record what decoding would refuse it for.
class RecordCheck {
 public:
  RecordCheck(const Header& header, std::vector<Wanted> wanted)
      : fields_(header.names.size()), wanted_(std::move(wanted)) {}

  std::optional<std::string> count_problem(const CsvLine& line) const {
    if (line.fields() == fields_) return {};
    return fmt::format(
        "{} fields, but the header names {} columns; quote fields that contain a comma or a new line",
        line.fields(), fields_);
  }

  std::optional<std::string> problem(const CsvLine& line, bool non_ascii) const {
    if (auto found = count_problem(line)) return found;
    for (const Wanted& wanted : wanted_)
      if (auto found = value_problem(line.raw(wanted.field), wanted.column, non_ascii)) return found;
    return {};
  }

  static std::optional<std::string> value_problem(std::string_view raw, const BlockField& column,
                                                  bool non_ascii) {
    if (const char* found = problem_of(raw)) return found;
    std::string unescaped;
    const std::string_view field = unquote(raw, unescaped);
    if (column.type == ValueType::kBytes) {
      if (non_ascii && !is_utf8(field)) return fmt::format("column '{}' is not valid UTF-8", column.name);
      return {};
    }
    if (is_missing(field)) return {};
    const bool whole = column.type == ValueType::kI32 || column.type == ValueType::kI64;
    if (whole ? integer_of(field).has_value() : number_of(field).has_value()) return {};
    return fmt::format(
        "column '{}' has '{}', which is not a {} (of at most 1e30); name the column as categorical or leave "
        "the field empty",
        column.name, field.substr(0, 40), whole ? "whole number" : "number");
  }

 private:
  size_t fields_;
  std::vector<Wanted> wanted_;
};

class CsvDecoder : public ShardDecoder {
 public:
  CsvDecoder(const ByteSource& shard, const ShardIndex& index, const Header& header,
             std::vector<Wanted> wanted, char separator)
      : ShardDecoder(shard, index),
        separator_(separator),
        fields_(header.names.size()),
        wanted_(wanted),
        check_(header, std::move(wanted)) {}

  void decode(std::span<const std::string_view> fetched, int64_t first, int64_t count,
              ColumnBlock& block) const override {
    const GranuleSpan span = span_of(index(), first, count);
    const std::string_view text = fetched[0];
    thread_local CsvScan scan;
    thread_local std::vector<uint32_t> lines;
    scan_csv(text, separator_, span.offset + span.bytes == bytes().size(), scan);
    find_records(text, scan, span, first, count, lines);
    for (size_t i = 0; i < wanted_.size(); ++i)
      decode_column(text, scan, span, lines, wanted_[i], block.columns[i], block);
    block.records += count;
  }

  std::string describe(int64_t record) const override {
    const GranuleSpan span = span_of(index(), record, 1);
    std::string text(static_cast<size_t>(span.bytes + kPadding), '\0');
    bytes().read(span.offset, std::span(text).first(static_cast<size_t>(span.bytes)));
    const std::string_view view = std::string_view(text).substr(0, static_cast<size_t>(span.bytes));
    CsvScan scan;
    std::vector<uint32_t> lines;
    scan_csv(view, separator_, span.offset + span.bytes == bytes().size(), scan);
    find_records(view, scan, span, record, 1, lines);
    const int64_t offset = span.offset + line_of(view, scan, lines[0]).begin;
    return fmt::format("{}:{}", bytes().name(), line_number(bytes(), offset));
  }

 private:
  // The lines that hold records [first, first + count).
  void find_records(std::string_view text, const CsvScan& scan, const GranuleSpan& span, int64_t first,
                    int64_t count, std::vector<uint32_t>& lines) const {
    lines.clear();
    int64_t number = span.first;
    for (size_t i = 0; i < scan.lines.size() && number < first + count; ++i) {
      const CsvLine line = line_of(text, scan, i);
      if (line.blank()) continue;
      if (!index().bad.empty() && index().is_bad(span.offset + line.begin)) continue;
      if (number >= first) {
        if (line.fields() != fields_) refuse(span.offset + line.begin, *check_.count_problem(line));
        lines.push_back(static_cast<uint32_t>(i));
      }
      ++number;
    }
    if (number < first + count)
      refuse(span.offset, "fewer records than the index has; the file has changed since it was indexed");
  }

  void decode_column(std::string_view text, const CsvScan& scan, const GranuleSpan& span,
                     const std::vector<uint32_t>& lines, const Wanted& wanted, BlockColumn& column,
                     ColumnBlock& block) const {
    std::visit(
        [&](auto& values) {
          using T = typename std::decay_t<decltype(values)>::value_type;
          const size_t before = values.size();
          values.reserve(before + lines.size());
          if (!column.missing.empty()) column.missing.resize(before + lines.size());
          for (size_t r = 0; r < lines.size(); ++r) {
            const CsvLine line = line_of(text, scan, lines[r]);
            const std::string_view raw = line.raw(wanted.field);
            if (scan.quotes || (scan.non_ascii && std::is_same_v<T, std::string_view>)) {
              if (const auto problem = RecordCheck::value_problem(raw, wanted.column, scan.non_ascii))
                refuse(span.offset + line.begin, *problem);
            }
            append<T>(raw, span.offset + line.begin, before + r, before + lines.size(), column, values,
                      block);
          }
        },
        column.values);
  }

  template <typename T>
  void append(std::string_view raw, int64_t offset, size_t record, size_t records, BlockColumn& column,
              std::vector<T>& values, ColumnBlock& block) const {
    const bool quoted = !raw.empty() && raw[0] == '"';
    if constexpr (std::is_same_v<T, std::string_view>) {
      if (!quoted) {
        values.push_back(raw);
        return;
      }
      auto unescaped = std::make_shared<std::string>();
      values.push_back(unquote(raw, *unescaped));
      if (values.back().data() == unescaped->data()) block.keep.push_back(std::move(unescaped));
    } else {
      std::string unescaped;
      const std::string_view field = quoted ? unquote(raw, unescaped) : raw;
      std::optional<T> value;
      if constexpr (std::is_integral_v<T>) {
        if (const auto found = integer_of(field)) value = static_cast<T>(*found);
      } else {
        if (const auto found = number_of(field)) value = static_cast<T>(*found);
      }
      if (!value && is_missing(field)) {
        column.missing.resize(records);
        column.missing[record] = 1;
        value = T{};
      }
      if (!value) refuse(offset, *RecordCheck::value_problem(raw, column.field(), true));
      values.push_back(*value);
    }
  }

  [[noreturn]] void refuse(int64_t offset, const std::string& problem) const {
    throw UserError("{}:{}: {} (byte {})", bytes().name(), line_number(bytes(), offset), problem, offset);
  }

  char separator_;
  size_t fields_;
  std::vector<Wanted> wanted_;
  RecordCheck check_;
};

class CsvFormat : public Format {
 public:
  explicit CsvFormat(const FormatOptions& options) : Format(options) {
    for (const auto& [key, value] : options.settings) {
      if (key != "separator") throw UserError("csv has no setting '{}'; it has separator", key);
      if (value.size() != 1 || value == "\"" || value == "\n" || value == "\r")
        throw UserError("the separator of csv is '{}'; use one character, such as ; or a tab", value);
      separator_ = value[0];
    }
    for (const BlockField& column : options.columns)
      if (column.width != 1 || column.type == ValueType::kU8)
        throw UserError("csv cannot give column '{}' as {}", column.name, name_of(column.type));
  }

  std::string_view name() const override { return "csv"; }
  int version() const override { return 1; }
  std::string_view suffix() const override { return ".csv"; }

  std::vector<BlockField> fields(const ByteSource& shard) const override {
    std::vector<BlockField> fields;
    for (const Wanted& wanted : header_of(shard).wanted(options().columns, shard))
      fields.push_back(wanted.column);
    return fields;
  }

  ShardIndex index(const ByteSource& shard, const Progress& progress) const override {
    const Header header = header_of(shard);
    const RecordCheck check(header, header.wanted(options().columns, shard));
    GrowingGranules granules;
    std::vector<BadRecord> bad;
    const bool skip = options().bad == BadRecords::kSkip;
    CsvScan scan;
    TextLines lines(shard, header.end);
    const auto refuse = [&](int64_t offset, const std::string& problem) {
      if (!skip)
        throw UserError("{}:{}: {} (byte {})", shard.name(), line_number(shard, offset), problem, offset);
      bad.push_back({offset, problem});
      granules.leave_out(offset);
    };
    const auto whole_lines = [&](std::string_view text, bool last) {
      scan_csv(text, separator_, last, scan);
      return scan.lines.empty() ? size_t{0}
                                : std::min<size_t>(scan.ends[scan.lines.back() - 1] + size_t{1}, text.size());
    };
    while (const auto piece = lines.next(whole_lines)) {
      if (piece->too_long) {
        refuse(piece->offset, scan.open_quote && piece->last
                                  ? "the quote that opens here is never closed; add the closing quote"
                                  : "a record of more than 16 MiB; is a quote never closed?");
        lines.skip_record([&](std::string_view text, bool& inside) { return line_end(text, inside); });
        continue;
      }
      for (size_t i = 0; i < scan.lines.size(); ++i) {
        const CsvLine line = line_of(piece->text, scan, i);
        if (line.blank()) continue;
        const int64_t offset = piece->offset + line.begin;
        const auto problem = skip ? check.problem(line, scan.non_ascii) : check.count_problem(line);
        if (problem)
          refuse(offset, *problem);
        else
          granules.add(offset);
      }
      progress(piece->consumed);
    }
    if (granules.records() == 0) throw UserError("{}: the file has a header but no records", shard.name());
    ShardIndex index = granules.finish(shard.size());
    index.bad = std::move(bad);
    return index;
  }

  std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const override {
    const Header header = header_of(shard);
    return std::make_unique<CsvDecoder>(shard, index, header, header.wanted(options().columns, shard),
                                        separator_);
  }

 private:
  // The position behind the first line end that is not in quotes; npos: there is none in this text.
  static size_t line_end(std::string_view text, bool& inside) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"') inside = !inside;
      if (text[i] == '\n' && !inside) return i + 1;
    }
    return std::string_view::npos;
  }

  Header header_of(const ByteSource& shard) const {
    CsvScan scan;
    size_t header_line = 0;
    const auto first_line = [&](std::string_view text, bool last) -> size_t {
      scan_csv(text, separator_, last, scan);
      for (header_line = 0; header_line < scan.lines.size(); ++header_line)
        if (!line_of(text, scan, header_line).blank())
          return std::min<size_t>(scan.ends[scan.lines[header_line] - 1] + size_t{1}, text.size());
      return 0;
    };
    TextLines lines(shard, 0);
    const auto piece = lines.next(first_line);
    if (!piece || piece->too_long)
      throw UserError("{}: the file is empty; its first line must name the columns", shard.name());
    return {names_in(line_of(piece->text, scan, header_line), shard), piece->offset + piece->consumed};
  }

  char separator_ = ',';
};

}  // namespace

std::unique_ptr<Format> make_csv_format(const FormatOptions& options) {
  return std::make_unique<CsvFormat>(options);
}

}  // namespace lockstep

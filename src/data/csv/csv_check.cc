#include "data/csv/csv_check.h"

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "data/bytes/text_lines.h"
#include "data/format/value_text.h"

namespace lockstep {
namespace {

// That are recognised; the first is taken where none of them is in the header.
constexpr std::string_view kSeparators = ",;\t|";

std::string name_of(char separator) {
  switch (separator) {
    case ',': return "comma";
    case ';': return "semicolon";
    case '\t': return "tab";
    case '|': return "vertical bar";
    default: return fmt::format("'{}'", separator);
  }
}

size_t outside_quotes(std::string_view line, char wanted) {
  size_t count = 0;
  bool inside = false;
  for (const char c : line) {
    inside = inside != (c == '"');
    count += !inside && c == wanted ? 1 : 0;
  }
  return count;
}

char recognised_separator(std::string_view line) {
  char found = kSeparators[0];
  for (const char separator : kSeparators)
    if (outside_quotes(line, separator) > outside_quotes(line, found)) found = separator;
  return found;
}

// A separator that the header does not have would make one column of all.
void check_named(std::string_view line, char named, const ByteSource& shard) {
  const char found = recognised_separator(line);
  const size_t there = outside_quotes(line, found);
  if (outside_quotes(line, named) > 0 || there == 0) return;
  throw UserError(
      "{}:1: the header has no {}, which data.delimiter says fields end with; it has {} times a {}",
      shard.name(), name_of(named), there, name_of(found));
}

std::vector<std::string> names_in(const CsvLine& header, const ByteSource& shard) {
  std::vector<std::string> names;
  std::string unescaped;
  for (size_t i = 0; i < header.fields(); ++i) {
    const std::string_view raw = header.raw(i);
    if (const char* problem = problem_of(raw)) throw UserError("{}:1: {}", shard.name(), problem);
    std::string name(unquote(raw, unescaped));
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

}  // namespace

std::vector<CsvWanted> CsvHeader::wanted(const std::vector<BlockField>& columns,
                                         const ByteSource& shard) const {
  std::vector<CsvWanted> wanted;
  if (columns.empty())
    for (size_t i = 0; i < names.size(); ++i) wanted.push_back({i, {names[i], ValueType::kBytes, 1}});
  for (const BlockField& column : columns) wanted.push_back({position_of(names, column.name, shard), column});
  return wanted;
}

CsvHeader csv_header(const ByteSource& shard, std::optional<char> named) {
  CsvScan scan;
  size_t header_line = 0;
  char separator = named.value_or(kSeparators[0]);
  const auto first_line = [&](std::string_view text, bool last) -> size_t {
    scan.look(text, separator, last);
    for (header_line = 0; header_line < scan.lines(); ++header_line)
      if (!scan.line(header_line).blank()) return scan.end_of(header_line + 1);
    return 0;
  };
  TextLines lines(shard, 0);
  lines.skip_to(text_begin(shard));  // then little is read for a header
  const auto piece = lines.next(first_line);
  if (!piece || piece->too_long)
    throw UserError("{}: the file is empty; its first line must name the columns", shard.name());
  const CsvLine line = scan.line(header_line);
  const std::string_view text = line.text.substr(line.begin, line.ends.back() - line.begin);
  if (named)
    check_named(text, *named, shard);
  else
    separator = recognised_separator(text);
  // Lines end where they did, whatever separates their fields.
  if (separator != named.value_or(kSeparators[0])) scan.look(piece->text, separator, piece->last);
  return {names_in(scan.line(header_line), shard), piece->offset + piece->consumed, separator};
}

std::optional<std::string> CsvCheck::count_problem(const CsvLine& line) const {
  if (line.fields() == fields_) return {};
  return fmt::format(
      "{} fields, but the header names {} columns; quote fields that contain a {} or a new line",
      line.fields(), fields_, name_of(separator_));
}

std::optional<std::string> CsvCheck::problem(const CsvLine& line, bool non_ascii) const {
  if (auto found = count_problem(line)) return found;
  for (const CsvWanted& wanted : wanted_)
    if (auto found = value_problem(line.raw(wanted.field), wanted.column, non_ascii)) return found;
  return {};
}

std::optional<std::string> CsvCheck::value_problem(std::string_view raw, const BlockField& column,
                                                   bool non_ascii) const {
  if (const char* found = problem_of(raw)) return found;
  std::string unescaped;
  const std::string_view field = unquote(raw, unescaped);
  if (column.type == ValueType::kBytes) {
    if (non_ascii && !is_utf8(field)) return fmt::format("column '{}' is not valid UTF-8", column.name);
    return {};
  }
  if (missing_.has_for_number(field)) return {};
  const bool whole = column.type == ValueType::kI32 || column.type == ValueType::kI64;
  if (whole ? integer_of(field).has_value() : parse_number(field).has_value()) return {};
  return fmt::format("column '{}' has '{}', {}", column.name, field.substr(0, 40),
                     not_a_number(field, whole));
}

const char* problem_of(std::string_view raw) {
  if (raw.empty() || raw[0] != '"') {
    return raw.find('"') == std::string_view::npos
               ? nullptr
               : "a quote inside a field; put the field in quotes and double the quote: \"a \"\"b\"\"\"";
  }
  for (size_t i = 1; i < raw.size(); ++i) {
    if (raw[i] != '"') continue;
    if (i + 1 == raw.size()) return nullptr;
    if (raw[i + 1] != '"') return "text follows a closing quote; end the field there, or double the quote";
    ++i;
  }
  return "the quote that opens here is never closed; add the closing quote";
}

std::string_view unquote(std::string_view raw, std::string& unescaped) {
  if (raw.empty() || raw[0] != '"') return raw;
  const std::string_view inside = raw.substr(1, raw.size() - 2);
  if (inside.find('"') == std::string_view::npos) return inside;
  unescaped.clear();
  for (size_t i = 0; i < inside.size(); ++i) {
    unescaped += inside[i];
    if (inside[i] == '"') ++i;
  }
  return unescaped;
}

}  // namespace lockstep

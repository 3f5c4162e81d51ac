#include "data/csv/csv_format.h"

#include "base/error.h"
#include "data/bytes/text_lines.h"
#include "data/csv/csv_check.h"
#include "data/format/shard_index.h"

namespace lockstep {
namespace {

class CsvFormat : public Format {
 public:
  CsvFormat(const FormatOptions& options, const CsvLoops& loops) : Format(options), loops_(loops) {
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
  int version() const override { return 3; }
  std::string_view suffix() const override { return ".csv"; }
  bool names_columns() const override { return true; }

  std::vector<BlockField> fields(const ByteSource& shard) const override {
    std::vector<BlockField> fields;
    for (const CsvWanted& wanted : csv_header(shard, separator_).wanted(options().columns, shard))
      fields.push_back(wanted.column);
    return fields;
  }

  ShardIndex index(const ByteSource& shard, const Progress& progress) const override {
    const CsvHeader header = csv_header(shard, separator_);
    const CsvCheck check(header, header.wanted(options().columns, shard), options().missing_texts());
    GrowingGranules granules;
    std::vector<BadRecord> bad;
    const bool skip = options().bad == BadRecords::kSkip;
    CsvScan scan;
    TextLines lines(shard, header.end);
    const auto refuse = [&](int64_t offset, const std::string& problem, bool apart) {
      if (!skip) refuse_line(shard, offset, problem);
      bad.push_back({offset, problem});
      granules.leave_out(offset, apart);
    };
    const auto whole_lines = [&](std::string_view text, bool last) {
      scan.look(text, header.separator, last, loops_);
      return scan.end_of(scan.lines());
    };
    while (const auto piece = lines.next(whole_lines)) {
      if (piece->too_long) {
        refuse(piece->offset,
               scan.open_quote() && piece->last
                   ? "the quote that opens here is never closed; add the closing quote"
                   : "a record of more than 16 MiB; is a quote never closed?",
               true);
        lines.skip_record(line_end);
        continue;
      }
      int64_t consumed = piece->consumed;
      for (size_t i = 0; i < scan.lines(); ++i) {
        const CsvLine line = scan.line(i);
        if (line.blank()) continue;
        const int64_t offset = piece->offset + line.begin;
        // A quote where none belongs makes one record of all lines up to the next quote: also in a column
        // that nobody wants. Then only the first line is taken for damaged, and the next one for a record
        // again.
        const size_t first_line = scan.quotes() ? bytes_of_first_line(line) : 0;
        const char* stray = first_line > 0 ? quoting_problem(line) : nullptr;
        auto problem = skip ? check.problem(line, scan.non_ascii()) : check.count_problem(line);
        if (stray != nullptr) problem = stray;
        if (!problem) {
          granules.add(offset);
          continue;
        }
        const bool misled = first_line > 0 && (stray != nullptr || line.fields() != header.names.size());
        refuse(offset, *problem, misled);
        if (!misled) continue;
        lines.skip_to(offset + static_cast<int64_t>(first_line));
        consumed = lines.offset() - piece->offset;
        break;
      }
      progress(consumed);
    }
    if (granules.records() == 0 && bad.empty())
      throw UserError("{}: the file has a header but no records", shard.name());
    ShardIndex index = granules.finish(shard.size());
    index.bad = std::move(bad);
    return index;
  }

  std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const override {
    const CsvHeader header = csv_header(shard, separator_);
    return make_csv_decoder(shard, index, header, header.wanted(options().columns, shard),
                            options().missing_texts(), loops_);
  }

 private:
  // The position behind the first line end, quoted or not; npos: there is none in this text.
  static size_t line_end(std::string_view text, bool&) {
    const size_t found = text.find('\n');
    return found == std::string_view::npos ? found : found + 1;
  }

  // With its line end; 0: the record has only one line.
  static size_t bytes_of_first_line(const CsvLine& line) {
    return line.text.substr(line.begin, line.ends.back() - line.begin).find('\n') + 1;  // npos + 1 is 0
  }

  static const char* quoting_problem(const CsvLine& line) {
    for (size_t i = 0; i < line.fields(); ++i)
      if (const char* problem = problem_of(line.raw(i))) return problem;
    return nullptr;
  }

  const CsvLoops& loops_;
  std::optional<char> separator_;  // none: what the header of a shard shows
};

}  // namespace

std::unique_ptr<Format> make_csv_format(const FormatOptions& options) {
  return make_csv_format(options, csv_loops());
}

std::unique_ptr<Format> make_csv_format(const FormatOptions& options, const CsvLoops& loops) {
  return std::make_unique<CsvFormat>(options, loops);
}

}  // namespace lockstep

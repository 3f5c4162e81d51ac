#include "data/convert/convert.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/nearest.h"
#include "data/bytes/byte_source.h"
#include "data/bytes/files.h"
#include "data/format/value_text.h"
#include "data/records/record_sink.h"
#include "data/shards/formats.h"
#include "data/shards/shard_set.h"
#include "data/tokens/tokens_format.h"
#include "data/transform/table_encoding.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRecordsAtOnce = 4096;

constexpr std::string_view kTokens = "tokens";

std::string format_of(const std::string& path, const std::string& to) {
  constexpr auto kTables = std::to_array<std::string_view>({"csv", "jsonl", "tfrecord", "block", "parquet"});
  for (const std::string_view name : kTables) {
    const std::string_view suffix = make_format(name, {})->suffix();
    if (!suffix.empty() && without_compression(path).ends_with(suffix)) return std::string(name);
  }
  if (to == kTokens) return "text";
  throw UserError("{}: the ending does not say which format it is; name it with --from", path);
}

ShardSet open_shards(const std::string& format, const std::string& path,
                     const std::vector<BlockField>& columns) {
  return ShardSet(make_format(format, {columns}), std::vector<std::string>{path}, {});
}

// What the texts of a column are, so that nothing is lost where they become numbers.
class TextKinds {
 public:
  void look(std::string_view text) {
    if (is_missing(text)) return;
    some_ = true;
    if (!text_) look_at_number(text);
  }
  ValueType type() const {
    if (!some_ || text_ || (real_ && beyond_double_)) return ValueType::kBytes;
    return real_ ? ValueType::kF64 : ValueType::kI64;
  }

 private:
  // 007, +1, -0 and whole numbers beyond 64 bits would not come back from a number as they were.
  void look_at_number(std::string_view text) {
    const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
    const auto whole = integer_of(text);
    if (digits.starts_with('+') || text == "-0" ||
        (digits.size() > 1 && digits[0] == '0' && is_digit(digits[1])) ||
        (!whole && std::all_of(digits.begin(), digits.end(), is_digit)))
      text_ = true;
    else if (whole)
      beyond_double_ = beyond_double_ || FieldSurvey::is_beyond_double(*whole);
    else if (parse_number(text))
      real_ = true;
    else
      text_ = true;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  bool some_ = false, text_ = false, real_ = false, beyond_double_ = false;
};

void check_names(const std::vector<std::string>& names, const std::vector<BlockField>& fields,
                 std::string_view option) {
  std::vector<std::string_view> known;
  for (const BlockField& field : fields) known.push_back(field.name);
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UserError("{}: there is no column '{}'; {}", option, name, suggestion(name, known));
}

// The columns to decode, in types that change no value. A text may be a number in CSV, which has nothing
// else, and in TFRecord, which has no doubles.
std::vector<BlockField> converted_columns(const ConvertOptions& options, const std::string& format,
                                          const std::vector<std::string>& paths) {
  std::vector<std::unique_ptr<ByteSource>> shards;
  for (const std::string& path : paths) shards.push_back(open_shard(path, {}));
  std::vector<BlockField> fields = make_format(format, {})->all_fields(shards, options.without);
  check_names(options.text, fields, "--text");
  if (fields.empty()) throw UserError("no column is left to convert");
  if (format != "csv" && format != "tfrecord") return fields;
  std::vector<TextKinds> kinds(fields.size());
  BlockScratch scratch;
  StageCounters counters;
  for (const std::string& path : paths) {
    const ShardSet set = open_shards(format, path, fields);
    for (int64_t first = 0; first < set.records(); first += kRecordsAtOnce) {
      set.load(first, std::min(kRecordsAtOnce, set.records() - first), scratch, counters);
      for (size_t c = 0; c < fields.size(); ++c) {
        const BlockColumn& column = scratch.block.columns[c];
        if (column.type() != ValueType::kBytes || column.width != 1) continue;
        for (const std::string_view text : column.as<std::string_view>()) kinds[c].look(text);
      }
    }
  }
  for (size_t c = 0; c < fields.size(); ++c) {
    const bool text =
        std::find(options.text.begin(), options.text.end(), fields[c].name) != options.text.end();
    if (fields[c].type == ValueType::kBytes && fields[c].width == 1 && !text)
      fields[c].type = kinds[c].type();
  }
  return fields;
}

void convert_shard(const ConvertOptions& options, const ShardSet& set, const std::string& out_path,
                   ConvertReport& report) {
  const auto writer = make_table_writer(options.to, set.fields(), options.writer);
  PartialFile file(out_path);
  BlockScratch scratch;
  StageCounters counters;
  std::string bytes;
  const int64_t records = set.manifest().records();
  for (int64_t first = 0; first < records; first += kRecordsAtOnce) {
    set.load(first, std::min(kRecordsAtOnce, records - first), scratch, counters);
    bytes.clear();
    writer->append(scratch.block, bytes);
    file.write(bytes);
  }
  bytes.clear();
  writer->finish(bytes);
  file.write(bytes);
  file.finish();
  report.records += records;
  report.bytes_read += set.manifest().bytes();
  report.bytes_written += file.size();
  report.files.push_back(out_path);
}

}  // namespace

std::vector<std::string_view> converted_formats() {
  std::vector<std::string_view> names = written_formats();
  names.push_back(kTokens);
  return names;
}

ConvertReport convert_files(const ConvertOptions& options) {
  // Text files may be called anything.
  const bool any = options.from.empty() || options.from == "text";
  std::vector<std::string> paths =
      expand_files(options.files, any ? "" : make_format(options.from, {})->suffix());
  if (paths.empty()) throw UserError("no data files are given");
  const std::string from = options.from.empty() ? format_of(paths[0], options.to) : options.from;
  std::error_code failure;
  fs::create_directories(options.folder, failure);
  if (failure) throw UserError("cannot make the folder {}: {}", options.folder, failure.message());
  std::vector<std::string> outs;
  for (const std::string& path : paths) {
    const std::string stem = fs::path(without_compression(path)).stem().string();
    outs.push_back((fs::path(options.folder) / (stem + "." + options.to)).string());
    if (fs::exists(outs.back()) || std::count(outs.begin(), outs.end(), outs.back()) > 1)
      throw UserError("{} would be written over; choose another folder", outs.back());
  }
  if (from == "text" && options.to != kTokens) throw UserError("text files become tokens; write --to tokens");
  if (options.to == kTokens) return convert_to_tokens(options, from, paths, outs);
  const std::vector<BlockField> columns = converted_columns(options, from, paths);
  ConvertReport report;
  for (size_t i = 0; i < paths.size(); ++i)
    convert_shard(options, open_shards(from, paths[i], columns), outs[i], report);
  return report;
}

namespace {

constexpr int64_t kPiece = int64_t{1} << 20;

void append_bytes(std::string_view text, TokenFileWriter& file) {
  thread_local std::vector<uint16_t> tokens;
  tokens.assign(text.size(), 0);
  for (size_t i = 0; i < text.size(); ++i) tokens[i] = static_cast<unsigned char>(text[i]);
  file.append(tokens);
}

int64_t convert_text(const std::string& path, TokenFileWriter& file) {
  const auto bytes = open_shard(path);
  std::string piece;
  for (int64_t at = 0; at < bytes->size(); at += kPiece) {
    piece.resize(static_cast<size_t>(std::min(kPiece, bytes->size() - at)));
    bytes->read(at, piece);
    append_bytes(piece, file);
  }
  file.end_document();
  return bytes->size();
}

int64_t convert_table(const std::string& from, const std::string& column, const std::string& path,
                      TokenFileWriter& file) {
  const ShardSet set(make_format(from, {{{column, ValueType::kBytes, 1}}}), std::vector<std::string>{path},
                     {});
  BlockScratch scratch;
  StageCounters counters;
  const int64_t records = set.manifest().records();
  for (int64_t first = 0; first < records; first += kRecordsAtOnce) {
    set.load(first, std::min(kRecordsAtOnce, records - first), scratch, counters);
    const BlockColumn& texts = scratch.block.columns[0];
    if (texts.type() != ValueType::kBytes) throw UserError("{}: column '{}' is not text", path, column);
    for (const std::string_view text : texts.as<std::string_view>()) {
      append_bytes(text, file);
      file.end_document();
    }
  }
  return set.manifest().bytes();
}

}  // namespace

ConvertReport convert_to_tokens(const ConvertOptions& options, const std::string& from,
                                const std::vector<std::string>& paths, const std::vector<std::string>& outs) {
  if (from != "text" && options.column.empty())
    throw UserError("name the column of {} that holds the text, with --column", from);
  if (from == "text" && !options.column.empty())
    throw UserError("text files have no columns; leave --column out");
  ConvertReport report;
  for (size_t i = 0; i < paths.size(); ++i) {
    TokenFileWriter file(outs[i]);
    report.bytes_read +=
        from == "text" ? convert_text(paths[i], file) : convert_table(from, options.column, paths[i], file);
    report.records += file.documents();
    report.bytes_written += file.finish();
    report.files.push_back(outs[i]);
  }
  return report;
}

}  // namespace lockstep

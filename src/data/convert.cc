#include "data/convert.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "data/convert_tokens.h"
#include "data/files.h"
#include "data/format/compressed_source.h"
#include "data/format/csv_record.h"
#include "data/pipeline/shard_set.h"
#include "data/table_encoding.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSampledRecords = 10000;
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

// What a column of text holds, as far as a sample tells.
ValueType type_in(const std::vector<std::string_view>& values) {
  bool whole = true;
  bool number = true;
  bool some = false;
  for (const std::string_view value : values) {
    if (is_missing(value)) continue;
    some = true;
    whole = whole && integer_of(value).has_value();
    number = number && number_of(value).has_value();
  }
  if (!some) return ValueType::kBytes;
  return whole ? ValueType::kI64 : number ? ValueType::kF64 : ValueType::kBytes;
}

// The columns to decode; none, where the format knows them itself. A text may be a number in CSV, which has
// nothing else, and in TFRecord, which has no doubles.
std::vector<BlockField> typed_columns(const ConvertOptions& options, const std::string& format,
                                      const std::string& path) {
  if (format != "csv" && format != "tfrecord") return {};
  const ShardSet set = open_shards(format, path, {});
  BlockScratch scratch;
  StageCounters counters;
  set.load(0, std::min(kSampledRecords, set.manifest().records()), scratch, counters);
  std::vector<BlockField> fields = set.fields();
  for (size_t c = 0; c < fields.size(); ++c) {
    const bool text =
        std::find(options.text.begin(), options.text.end(), fields[c].name) != options.text.end();
    if (fields[c].type == ValueType::kBytes && fields[c].width == 1 && !text)
      fields[c].type = type_in(scratch.block.columns[c].as<std::string_view>());
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
  const std::vector<BlockField> columns = typed_columns(options, from, paths[0]);
  ConvertReport report;
  for (size_t i = 0; i < paths.size(); ++i)
    convert_shard(options, open_shards(from, paths[i], columns), outs[i], report);
  return report;
}

}  // namespace lockstep

#include <algorithm>

#include "base/error.h"
#include "data/bytes/byte_source.h"
#include "data/convert/convert.h"
#include "data/shards/formats.h"
#include "data/shards/shard_set.h"
#include "data/tokens/tokens_format.h"

namespace lockstep {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;
constexpr int64_t kRecordsAtOnce = 1024;

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

#include "data/shards/formats.h"

#include "base/error.h"
#include "base/nearest.h"
#include "data/block/block_format.h"
#include "data/csv/csv_format.h"
#include "data/images/image_shard.h"
#include "data/jsonl/jsonl_format.h"
#include "data/parquet/parquet_format.h"
#include "data/tar/tar_members.h"
#include "data/text/text_format.h"
#include "data/tfrecord/tfrecord_format.h"
#include "data/tokens/tokens_format.h"

namespace lockstep {
namespace {

struct FormatEntry {
  std::string_view name;
  std::unique_ptr<Format> (*make)(const FormatOptions& options);
};

// A format is added by its line here.
constexpr FormatEntry kFormats[] = {
    {"csv", make_csv_format},       {"images", make_images_format},   {"tar", make_tar_format},
    {"tokens", make_tokens_format}, {"jsonl", make_jsonl_format},     {"tfrecord", make_tfrecord_format},
    {"block", make_block_format},   {"parquet", make_parquet_format}, {"text", make_text_format},
};

struct WriterEntry {
  std::string_view name;
  std::unique_ptr<TableWriter> (*make)(const std::vector<BlockField>& fields,
                                       const TableWriterOptions& options);
};

// A writer is added by its line here.
constexpr WriterEntry kWriters[] = {
    {"block", make_block_writer}, {"parquet", make_parquet_writer},   {"csv", make_csv_writer},
    {"jsonl", make_jsonl_writer}, {"tfrecord", make_tfrecord_writer},
};

}  // namespace

std::unique_ptr<Format> make_format(std::string_view name, const FormatOptions& options) {
  for (const FormatEntry& entry : kFormats)
    if (entry.name == name) return entry.make(options);
  throw UserError("there is no data format '{}'; {}", name, suggestion(name, format_names()));
}

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const FormatEntry& entry : kFormats) names.push_back(entry.name);
  return names;
}

std::unique_ptr<TableWriter> make_table_writer(std::string_view format, const std::vector<BlockField>& fields,
                                               const TableWriterOptions& options) {
  for (const WriterEntry& entry : kWriters)
    if (entry.name == format) return entry.make(fields, options);
  throw UserError("files of format '{}' cannot be written; {}", format,
                  suggestion(format, written_formats()));
}

std::vector<std::string_view> written_formats() {
  std::vector<std::string_view> names;
  for (const WriterEntry& entry : kWriters) names.push_back(entry.name);
  return names;
}

}  // namespace lockstep

#include "data/format/format.h"

#include <algorithm>

#include "base/error.h"
#include "base/nearest.h"
#include "data/format/block_format.h"
#include "data/format/csv_format.h"
#include "data/format/images_format.h"
#include "data/format/jsonl_format.h"
#include "data/format/parquet_format.h"
#include "data/format/tar_format.h"
#include "data/format/text_format.h"
#include "data/format/tfrecord_format.h"
#include "data/format/tokens_format.h"

namespace lockstep {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Format> (*make)(const FormatOptions& options);
};

// A format is added by its line here.
constexpr Entry kFormats[] = {
    {"csv", make_csv_format},       {"images", make_images_format},   {"tar", make_tar_format},
    {"tokens", make_tokens_format}, {"jsonl", make_jsonl_format},     {"tfrecord", make_tfrecord_format},
    {"block", make_block_format},   {"parquet", make_parquet_format}, {"text", make_text_format},
};

}  // namespace

std::string FormatOptions::text() const {
  std::string text = fmt::format("bad {}\n", bad == BadRecords::kSkip ? "skip" : "stop");
  for (const BlockField& field : columns)
    text += fmt::format("column {} {} {}\n", field.name, name_of(field.type), field.width);
  for (const auto& [key, value] : settings) text += fmt::format("setting {} {}\n", key, value);
  return text;
}

std::string FormatOptions::index_text() const {
  return bad == BadRecords::kSkip ? text() : FormatOptions{{}, settings, bad}.text();
}

std::vector<GranuleSpan> ShardDecoder::spans(int64_t first, int64_t count) const {
  return {span_of(index(), first, count)};
}

void ShardDecoder::decode_compact(std::span<const std::string_view>, int64_t, int64_t, std::byte*) const {
  throw InternalError("{} has no compact rows", bytes().name());
}

std::string ShardDecoder::describe(int64_t record) const {
  const int64_t granule = index().granule_of(record);
  return fmt::format("{} record {} (after byte {})", bytes().name(), record,
                     index().offsets[static_cast<size_t>(granule)]);
}

std::unique_ptr<Format> make_format(std::string_view name, const FormatOptions& options) {
  for (const Entry& entry : kFormats)
    if (entry.name == name) return entry.make(options);
  throw UserError("there is no data format '{}'; {}", name, suggestion(name, format_names()));
}

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kFormats) names.push_back(entry.name);
  return names;
}

}  // namespace lockstep

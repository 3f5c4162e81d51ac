#include "data/records/record_format.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/nearest.h"
#include "data/bytes/text_lines.h"
#include "data/format/shard_index.h"
#include "data/format/value_text.h"

namespace lockstep {
namespace {

int64_t longest_record(std::string_view format, const FormatOptions& options) {
  constexpr int64_t kShortest = 16, kLongest = int64_t{1} << 30;
  int64_t longest = TextLines::kLongestRecord;
  for (const auto& [key, value] : options.settings) {
    if (key != "longest_record")
      throw UserError("{} has no setting '{}'; it has longest_record", format, key);
    const auto bytes = integer_of(value);
    if (!bytes || *bytes < kShortest || *bytes > kLongest)
      throw UserError("longest_record is '{}'; use a number of bytes from {} to {}", value, kShortest,
                      kLongest);
    longest = *bytes;
  }
  return longest;
}

// A column that is wanted twice (as a number and as a category) is decoded once, as it is wanted first.
std::vector<BlockField> without_repeats(const std::vector<BlockField>& columns) {
  std::vector<BlockField> once;
  for (const BlockField& column : columns)
    if (std::none_of(once.begin(), once.end(), [&](const BlockField& c) { return c.name == column.name; }))
      once.push_back(column);
  return once;
}

}  // namespace

RecordFormat::RecordFormat(std::string_view name, const FormatOptions& options)
    : Format(options), name_(name), longest_(longest_record(name, options)) {}

const char* RecordFormat::damage_of(std::string_view) const { return nullptr; }

std::vector<BlockField> RecordFormat::fields(const ByteSource& shard) const {
  if (!options().columns.empty()) return without_repeats(options().columns);
  FieldSurvey found;
  int64_t records = 0;
  const auto record = [&](int64_t offset, std::string_view content, const char* problem) {
    try {
      if (problem == nullptr && damage_of(content) == nullptr) survey(content, found);
    } catch (const RecordProblem& refused) {
      if (options().bad == BadRecords::kStop) refuse(shard, offset, refused.what());
    }
    return ++records < FieldSurvey::kRecords;
  };
  scan(shard, record, [](int64_t) {});
  std::vector<BlockField> fields;
  for (const FieldSurvey::Seen& seen : found.all()) fields.push_back(field_of(seen));
  return fields;
}

std::vector<BlockField> RecordFormat::all_fields(std::span<const std::unique_ptr<ByteSource>> shards,
                                                 const std::vector<std::string>& without) const {
  FieldSurvey found;
  for (const auto& shard : shards) {
    const auto record = [&](int64_t offset, std::string_view content, const char* problem) {
      try {
        if (problem == nullptr) problem = damage_of(content);
        if (problem != nullptr) refuse(*shard, offset, problem);
        survey(content, found);
      } catch (const RecordProblem& refused) {
        refuse(*shard, offset, refused.what());
      }
      return true;
    };
    scan(*shard, record, [](int64_t) {});
  }
  std::vector<BlockField> fields;
  for (const FieldSurvey::Seen& seen : found.all())
    if (std::find(without.begin(), without.end(), seen.name) == without.end())
      fields.push_back(exact_field_of(seen));
  return fields;
}

void RecordFormat::check_columns(std::span<const std::unique_ptr<ByteSource>> shards) const {
  std::vector<std::string_view> wanted;
  for (const BlockField& column : options().columns) wanted.push_back(column.name);
  FieldSurvey found;
  for (size_t i = 0; i < shards.size() && !wanted.empty(); ++i) {
    int64_t records = 0;
    const auto record = [&](int64_t, std::string_view content, const char* problem) {
      try {
        if (problem == nullptr && damage_of(content) == nullptr) survey(content, found);
      } catch (const RecordProblem&) {  // indexing or decoding says so
      }
      std::erase_if(wanted, [&](std::string_view name) { return found.has(name); });
      return !wanted.empty() && ++records < FieldSurvey::kRecords;
    };
    scan(*shards[i], record, [](int64_t) {});
  }
  if (wanted.empty() || found.all().empty()) return;
  std::vector<std::string_view> known;
  for (const FieldSurvey::Seen& seen : found.all()) known.push_back(seen.name);
  throw UserError("{}: there is no column '{}' in the first {} records of {}; {}", shards[0]->name(),
                  wanted[0], FieldSurvey::kRecords, shards.size() > 1 ? "any file" : "the file",
                  suggestion(wanted[0], known));
}

ShardIndex RecordFormat::index(const ByteSource& shard, const Progress& progress) const {
  const bool skip = options().bad == BadRecords::kSkip;
  RecordTrial trial(skip ? fields(shard) : std::vector<BlockField>(), options().missing_texts());
  GrowingGranules granules;
  std::vector<BadRecord> bad;
  // Without a look at what records mean, unless bad ones are to be found.
  const auto problem_of = [&](std::string_view content, const char* known) -> std::optional<std::string> {
    if (known != nullptr) return known;
    if (!skip) return {};
    if (const char* damage = damage_of(content)) return damage;
    return trial.problem([&](RecordSink& sink) { read(content, sink); });
  };
  const auto record = [&](int64_t offset, std::string_view content, const char* known) {
    if (const auto problem = problem_of(content, known)) {
      if (!skip) refuse(shard, offset, *problem);
      bad.push_back({offset, *problem});
      granules.leave_out(offset);
    } else {
      granules.add(offset);
    }
    return true;
  };
  scan(shard, record, [&](int64_t bytes) {
    progress(bytes);
    if (skip) trial.restart();
  });
  if (granules.records() == 0 && bad.empty()) throw UserError("{}: the file has no records", shard.name());
  ShardIndex index = granules.finish(shard.size());
  index.bad = std::move(bad);
  return index;
}

}  // namespace lockstep

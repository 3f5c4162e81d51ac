#include "data/table/column_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "data/format/missing_texts.h"
#include "data/format/value_text.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

// One value in twenty may be something else: more than that is no accident.
constexpr int64_t kOneIn = 20;
// Fewer values are too few to say that they do not repeat.
constexpr int64_t kFewestIdentifiers = 100;

ColumnSample sample_of(const BlockColumn& column, size_t records, bool typed) {
  ColumnSample sample{.records = static_cast<int64_t>(records),
                      .stays_text = typed && column.type() == ValueType::kBytes};
  const MissingTexts& missing = missing_texts(column);
  std::set<std::string, std::less<>> distinct;
  for_each_text(column, records, [&](size_t, std::string_view text) {
    if (missing.has_for_number(text)) return;
    ++sample.present;
    // Those with a decimal comma are refused when they are read, not taken for something else.
    sample.numbers += parse_number(text) || is_comma_number(text) ? 1 : 0;
    if (!distinct.contains(text)) distinct.emplace(text);
  });
  sample.distinct = static_cast<int64_t>(distinct.size());
  return sample;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_used(const TableEncoding& encoding, const std::string& name) {
  return name == encoding.label || name == encoding.weight || has(encoding.categorical, name) ||
         std::any_of(encoding.numeric.begin(), encoding.numeric.end(),
                     [&](const NumericColumn& column) { return column.name == name; });
}

}  // namespace

ColumnLook ColumnSample::look() const {
  if (present == 0) return ColumnLook::kIgnored;
  if (!stays_text && (present - numbers) * kOneIn <= present) return ColumnLook::kNumeric;
  const bool identifier = present >= kFewestIdentifiers && distinct * 2 > present;
  return identifier ? ColumnLook::kIgnored : ColumnLook::kCategorical;
}

LeftOutColumn ColumnSample::left_out(std::string name) const {
  constexpr const char* kAdvice =
      "to use it all the same, name it and the others under columns.numeric and columns.categorical";
  if (present == 0)
    return {std::move(name), fmt::format("no value in the first {} records", records), kAdvice};
  return {std::move(name),
          fmt::format("text that hardly repeats, {} different ones in {} records", distinct, present),
          kAdvice};
}

std::vector<ColumnSample> sample_columns(const ShardSet& shard, int64_t records) {
  BlockScratch scratch;
  StageCounters counters;
  shard.load(0, std::min(records, shard.records()), scratch, counters);
  std::vector<ColumnSample> samples;
  for (const BlockColumn& column : scratch.block.columns)
    if (column.width == 1)
      samples.push_back(
          sample_of(column, static_cast<size_t>(scratch.block.records), shard.format().is_typed()));
  return samples;
}

std::string to_text(const std::vector<ColumnSample>& samples) {
  std::string text;
  for (const ColumnSample& s : samples)
    text +=
        fmt::format("{} {} {} {} {}\n", s.records, s.present, s.numbers, s.distinct, s.stays_text ? 1 : 0);
  return text;
}

std::optional<std::vector<ColumnSample>> parse_samples(std::string_view text, size_t columns) {
  std::vector<ColumnSample> samples(columns);
  std::istringstream in{std::string(text)};
  for (ColumnSample& s : samples) in >> s.records >> s.present >> s.numbers >> s.distinct >> s.stays_text;
  // Printed again it must be the same: then nothing was passed over.
  if (!in || to_text(samples) != text) return {};
  return samples;
}

std::vector<LeftOutColumn> left_out_columns(const EncodingOptions& options, const TableEncoding& encoding,
                                            const std::vector<std::string>& read_by_transforms,
                                            const std::vector<BlockField>& fields,
                                            const std::vector<ColumnSample>& samples,
                                            std::vector<LeftOutColumn> unread) {
  std::vector<LeftOutColumn> left;
  size_t sampled = 0;
  for (const BlockField& field : fields) {
    const size_t number = field.width == 1 ? sampled++ : samples.size();
    if (is_used(encoding, field.name) || has(read_by_transforms, field.name)) continue;
    if (has(options.ignore, field.name))
      left.push_back({field.name, "named under columns.ignore"});
    else if (field.width != 1)
      left.push_back({field.name, "several values in a record, which a model of tables does not take"});
    else if (options.names_roles())
      left.push_back({field.name, "named neither under columns.numeric nor under columns.categorical"});
    else
      left.push_back(samples.at(number).left_out(field.name));
  }
  std::move(unread.begin(), unread.end(), std::back_inserter(left));
  return left;
}

}  // namespace lockstep

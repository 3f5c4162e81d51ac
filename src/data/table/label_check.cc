#include "data/table/label_check.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/format/value_text.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

constexpr int64_t kSampledLabels = 2048;
constexpr int64_t kSampledTogether = 256;

bool is_weight(double weight) { return weight >= 0 && weight <= kLargestNumber; }

std::string problem_of(const OpenedRecords& records, const LabelTest& test, int64_t record) {
  const std::shared_ptr<const ShardSet> shards = records.open_columns(test.test.columns);
  BlockScratch scratch;
  StageCounters counters;
  shards->load(record, 1, scratch, counters);
  return fmt::format("{}: {}", records.all->describe(record), test.problem(scratch.block, 0));
}

std::shared_ptr<const RecordSet> passing(const OpenedRecords& records, const LabelTest& test) {
  return kept_set(*records.all, test.test, records.open_columns, records.kept);
}

}  // namespace

bool is_in_files(const Transforms& transforms, const std::string& column) {
  return std::none_of(transforms.begin(), transforms.end(), [&](const auto& transform) {
    const std::vector<std::string> made = transform->makes();
    return std::find(made.begin(), made.end(), column) != made.end();
  });
}

TableEncoding in_files(const Transforms& transforms, TableEncoding encoding) {
  if (!is_in_files(transforms, encoding.weight)) encoding.weight.clear();
  return encoding;
}

std::function<bool(int64_t)> members_of(const ShardSet& part) {
  const RecordSet* set = part.selected();
  return [set](int64_t record) { return set == nullptr || set->contains(record); };
}

LabelTest label_test(const TableEncoding& encoding) {
  const LabelEncoding& labels = encoding.labels;
  const std::string weight = encoding.weight;
  LabelTest test;
  test.test.text = fmt::format("label 1 {} weight {}", labels.json(), weight);
  test.test.columns = {{labels.column, ValueType::kBytes, 1}};
  if (!weight.empty()) test.test.columns.push_back({weight, ValueType::kF64, 1});
  test.test.marks = [labels, weight](const ColumnBlock& block) {
    const auto records = static_cast<size_t>(block.records);
    std::vector<uint8_t> marks = usable_labels(labels, block.column(labels.column), records);
    if (weight.empty()) return marks;
    std::vector<double> room;
    const std::span<const double> weights = numbers_in(block.column(weight), room);
    for (size_t r = 0; r < records; ++r) marks[r] = marks[r] != 0 && is_weight(weights[r]) ? 1 : 0;
    return marks;
  };
  test.problem = [labels, weight](const ColumnBlock& block, size_t record) {
    const BlockColumn& column = block.column(labels.column);
    const bool label = usable_labels(labels, column, static_cast<size_t>(block.records))[record] != 0;
    return label ? fmt::format("the weight '{}' is missing or below 0; it must be a number of at least 0",
                               weight)
                 : label_problem(labels, column, record);
  };
  return test;
}

LabelTest label_test(const EncodeTextOptions& options) {
  const EncodeText encoding(options);
  LabelTest test;
  test.test.text = fmt::format("label 1 text {} {}", options.label, options.classes);
  test.test.columns = {{options.label, ValueType::kBytes, 1}};
  test.test.marks = [encoding, options](const ColumnBlock& block) {
    std::vector<uint8_t> marks(static_cast<size_t>(block.records));
    for_each_text(block.column(options.label), marks.size(),
                  [&](size_t r, std::string_view text) { marks[r] = encoding.class_of(text) ? 1 : 0; });
    return marks;
  };
  test.problem = [encoding, options](const ColumnBlock& block, size_t record) {
    std::string problem;
    for_each_text(block.column(options.label), static_cast<size_t>(block.records),
                  [&](size_t r, std::string_view text) {
                    if (r == record) problem = encoding.label_problem(text);
                  });
    return problem;
  };
  return test;
}

LabelKind kind_of_labels(const ShardSet& shards, const std::string& column, LabelTask asked) {
  const int64_t records = shards.manifest().records();
  BlockScratch scratch;
  StageCounters counters;
  std::vector<std::string> texts;
  BlockColumn all = make_column({column, ValueType::kBytes, 1});
  const auto sample = [&](int64_t first, int64_t count) {
    shards.load(first, count, scratch, counters);
    all.missing_texts = scratch.block.column(column).missing_texts;
    for_each_text(scratch.block.column(column), static_cast<size_t>(count),
                  [&](size_t, std::string_view text) { texts.emplace_back(text); });
  };
  if (records <= kSampledLabels) {
    sample(0, records);
  } else {
    constexpr int64_t kPieces = kSampledLabels / kSampledTogether;
    for (int64_t piece = 0; piece < kPieces; ++piece)
      sample(piece * (records - kSampledTogether) / (kPieces - 1), kSampledTogether);
  }
  all.as<std::string_view>().assign(texts.begin(), texts.end());
  return kind_of_labels(all, texts.size(), asked);
}

std::optional<UsableRecords> usable_records(const OpenedRecords& records, const LabelTest& test,
                                            double most_bad) {
  const std::shared_ptr<const RecordSet> set = passing(records, test);
  if (set->size() == set->records()) return {};
  return UsableRecords{set, test.test.text, most_bad,
                       [records, test](int64_t record) { return problem_of(records, test, record); }};
}

void require_usable(const OpenedRecords& records, const LabelTest& test,
                    const std::function<bool(int64_t record)>& among) {
  const std::shared_ptr<const RecordSet> set = passing(records, test);
  if (set->size() == set->records()) return;
  for (int64_t record = 0; record < set->records(); ++record)
    if (!set->contains(record) && among(record)) throw UserError("{}", problem_of(records, test, record));
}

}  // namespace lockstep

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "data/format/value_text.h"
#include "data/transform/column_values.h"
#include "data/transform/model_inputs.h"

namespace lockstep {
namespace {

// Weights of records as they are in files. Throws BadValue for one that is none.
std::span<const double> weights_in(const TableEncoding& encoding, const ColumnBlock& block,
                                   std::vector<double>& room) {
  const std::span<const double> weights = numbers_in(block.column(encoding.weight), room);
  for (size_t r = 0; r < weights.size(); ++r)
    if (!(weights[r] >= 0 && weights[r] <= kLargestNumber))
      throw BadValue(r,
                     fmt::format("the weight '{}' is {}; it must be a number of at least 0", encoding.weight,
                                 std::isnan(weights[r]) ? "missing" : fmt::format("{}", weights[r])));
  return weights;
}

class TableFit : public TransformFit {
 public:
  explicit TableFit(const TableEncoding& encoding)
      : encoding_(encoding), summaries_(encoding.numeric.size()) {}

  void add(const ColumnBlock& block) override {
    labels_.add(encoding_.labels, block.column(encoding_.label), static_cast<size_t>(block.records));
    std::vector<double> numbers;
    if (!encoding_.weight.empty()) weights_.merge(moments_of(weights_in(encoding_, block, numbers)));
    for (size_t i = 0; i < summaries_.size(); ++i) {
      numbers_of(block.column(encoding_.numeric[i].name), numbers);
      summaries_[i].merge(summarise(numbers));
    }
  }
  void merge(const TransformFit& next) override {
    const auto& other = dynamic_cast<const TableFit&>(next);
    for (size_t i = 0; i < summaries_.size(); ++i) summaries_[i].merge(other.summaries_[i]);
    labels_.merge(other.labels_);
    weights_.merge(other.weights_);
  }
  const NumericSummary& summary(size_t column) const { return summaries_[column]; }
  const LabelSummary& labels() const { return labels_; }
  const Moments& weights() const { return weights_; }

 private:
  const TableEncoding& encoding_;
  std::vector<NumericSummary> summaries_;
  LabelSummary labels_;
  Moments weights_;
};

// Without other transforms, columns lie in the order in which they are read.
const BlockColumn& column_near(const ColumnBlock& block, size_t place, const std::string& name) {
  return place < block.columns.size() && block.columns[place].name == name ? block.columns[place]
                                                                           : block.column(name);
}

void encode_dense(const TableEncoding& encoding, const ColumnBlock& block, std::vector<float>& dense) {
  const size_t width = static_cast<size_t>(encoding.dense());
  const size_t records = static_cast<size_t>(block.records);
  dense.resize(records * width);
  size_t flag = encoding.numeric.size();
  thread_local std::vector<double> room;
  thread_local std::vector<float> encoded;  // column after column
  encoded.resize(records * width);
  for (size_t i = 0; i < encoding.numeric.size(); ++i) {
    const NumericColumn& column = encoding.numeric[i];
    const std::span<const double> numbers = numbers_in(column_near(block, i, column.name), room);
    encode_numbers(column, numbers, std::span(encoded).subspan(i * records, records));
    if (!column.missing_flag) continue;
    for (size_t r = 0; r < records; ++r) encoded[flag * records + r] = std::isnan(numbers[r]) ? 1.0f : 0.0f;
    ++flag;
  }
  // Some rows at a time: those of a whole block would not stay in the cache from column to column.
  constexpr size_t kRows = 16;
  for (size_t first = 0; first < records; first += kRows) {
    const size_t end = std::min(records, first + kRows);
    for (size_t i = 0; i < width; ++i)
      for (size_t r = first; r < end; ++r) dense[r * width + i] = encoded[i * records + r];
  }
}

// What each record counts, once its label is encoded.
void encode_weights(const TableEncoding& encoding, const ColumnBlock& block, const BlockColumn& labels,
                    std::vector<float>& out) {
  const auto records = static_cast<size_t>(block.records);
  std::vector<double> all(records, 1.0), room;
  if (!encoding.weight.empty()) {
    const std::span<const double> weights = weights_in(encoding, block, room);
    for (size_t r = 0; r < records; ++r) all[r] = weights[r] / encoding.weight_mean;
  }
  for (size_t r = 0; !encoding.labels.weights.empty() && r < records; ++r)
    all[r] *= encoding.labels.weights[static_cast<size_t>(labels.type() == ValueType::kI32
                                                              ? labels.as<int32_t>()[r]
                                                              : static_cast<int32_t>(labels.as<float>()[r]))];
  out.assign(all.begin(), all.end());
}

constexpr std::string_view kSeen = "seen ";  // begins the lines that are kept beside the constants

}  // namespace

std::vector<BlockField> EncodeTable::reads() const {
  std::vector<BlockField> fields;
  for (const NumericColumn& column : encoding_.numeric) fields.push_back({column.name, ValueType::kF64, 1});
  for (const std::string& name : encoding_.categorical) fields.push_back({name, ValueType::kBytes, 1});
  if (!reads_label_) return fields;
  fields.push_back({encoding_.label, ValueType::kBytes, 1});
  if (!encoding_.weight.empty()) fields.push_back({encoding_.weight, ValueType::kF64, 1});
  return fields;
}

std::shared_ptr<const EncodeTable> EncodeTable::without_label() const {
  auto unlabelled = without_weights();
  unlabelled->reads_label_ = false;
  return unlabelled;
}

std::vector<BlockField> EncodeTable::fit_reads() const {
  std::vector<BlockField> fields = reads();
  const auto categorical = fields.begin() + static_cast<std::ptrdiff_t>(encoding_.numeric.size());
  fields.erase(categorical, categorical + static_cast<std::ptrdiff_t>(encoding_.categorical.size()));
  return fields;
}

std::vector<Column> EncodeTable::columns() const {
  std::vector<Column> columns;
  if (!encoding_.numeric.empty()) columns.push_back({"dense", DType::kF32, {encoding_.dense()}});
  for (size_t i = 0; i < encoding_.categorical.size(); ++i)
    columns.push_back({fmt::format("category.{}", i), DType::kI32, {}});
  const bool classes = encoding_.labels.task == LabelTask::kClassification;
  columns.push_back({"labels", classes ? DType::kI32 : DType::kF32, {}});
  if (encoding_.weighted()) columns.push_back({kWeightsColumn, DType::kF32, {}});
  return columns;
}

std::vector<BlockField> EncodeTable::output(const std::vector<BlockField>& input) const {
  for (const BlockField& field : reads()) {
    const BlockField& found = input[index_of(input, field.name)];
    if (found.width != 1) throw UserError("column '{}' holds several values in a record", field.name);
    if (field.type == ValueType::kF64 && found.type == ValueType::kBytes)
      throw UserError("column '{}' holds text; name it as categorical", field.name);
  }
  return made_fields();
}

std::vector<BlockField> EncodeTable::made_fields() const {
  std::vector<BlockField> fields;
  for (const Column& column : columns())
    fields.push_back(
        {column.name, column.dtype == DType::kF32 ? ValueType::kF32 : ValueType::kI32, column.shape.numel()});
  return fields;
}

void EncodeTable::encode_label(const ColumnBlock& block, ColumnBlock& encoded, size_t place) const {
  const auto records = static_cast<size_t>(block.records);
  BlockColumn& labels = encoded.columns[place];
  const bool classes = labels.type() == ValueType::kI32;
  if (!reads_label_) {
    if (classes)
      labels.as<int32_t>().assign(records, 0);
    else
      labels.as<float>().assign(records, 0.0f);
    return;
  }
  const BlockColumn& written = block.column(encoding_.label);
  if (classes)
    encode_classes(encoding_.labels, written, records, labels.as<int32_t>());
  else
    encode_labels(encoding_.labels, written, records, labels.as<float>());
  if (encoding_.weighted()) encode_weights(encoding_, block, labels, encoded.columns[place + 1].as<float>());
}

void EncodeTable::apply(const BlockPlace&, ColumnBlock& block) const {
  thread_local ColumnBlock encoded;  // the two take turns, so that memory of large blocks is used again
  encoded.reset(made_fields());
  encoded.records = block.records;
  const size_t records = static_cast<size_t>(block.records);
  size_t made = 0;
  if (!encoding_.numeric.empty()) encode_dense(encoding_, block, encoded.columns[made++].as<float>());
  for (size_t i = 0; i < encoding_.categorical.size(); ++i) {
    auto& buckets = encoded.columns[made++].as<int32_t>();
    buckets.resize(records);
    if (encoding_.ids.contains(encoding_.categorical[i])) {
      buckets = block.column(encoding_.categorical[i]).as<int32_t>();
      continue;
    }
    for_each_category(block.column(encoding_.categorical[i]), records, [&](size_t r, std::string_view text) {
      buckets[r] = category_bucket(text, encoding_.buckets);
    });
  }
  encode_label(block, encoded, made);
  std::swap(block, encoded);
}

std::unique_ptr<TransformFit> EncodeTable::begin_fit() const { return std::make_unique<TableFit>(encoding_); }

void EncodeTable::finish_fit(const TransformFit& fit) {
  const auto& table = dynamic_cast<const TableFit&>(fit);
  for (size_t i = 0; i < encoding_.numeric.size(); ++i)
    fit_numeric(options_, table.summary(i), encoding_.numeric[i]);
  FittedLabels labels = fit_labels(options_.task, options_.class_weights, encoding_.labels, table.labels());
  encoding_.labels = std::move(labels.encoding);
  decision_ = std::move(labels.decision);
  warning_ = std::move(labels.warning);
  if (encoding_.weight.empty()) return;
  encoding_.weight_mean = table.weights().mean;
  if (!(encoding_.weight_mean > 0))
    throw UserError("every weight in '{}' is 0, which leaves nothing to train on; give some records more",
                    encoding_.weight);
}

std::string EncodeTable::kept() const {
  std::string text = fitted() + fmt::format("{}{}\n", kSeen, decision_);
  if (!warning_.empty()) text += fmt::format("{}{}\n", kSeen, warning_);
  return text;
}

void EncodeTable::set_kept(std::string_view text) {
  const size_t at = text.find(fmt::format("\n{}", kSeen));
  if (at == std::string_view::npos) throw UserError("it does not say what was seen of the labels");
  std::vector<std::string> seen;
  for (std::string_view rest = text.substr(at + 1); rest.starts_with(kSeen);) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    seen.emplace_back(rest.substr(kSeen.size(), end - kSeen.size()));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  set_fitted(text.substr(0, at + 1));
  decision_ = seen[0];
  warning_ = seen.size() > 1 ? seen[1] : "";
}

std::shared_ptr<EncodeTable> EncodeTable::without_weights() const {
  auto other = std::make_shared<EncodeTable>(*this);
  other->encoding_.weight.clear();
  other->encoding_.labels.weights.clear();
  return other;
}

}  // namespace lockstep

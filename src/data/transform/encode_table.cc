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

class TableFit : public TransformFit {
 public:
  explicit TableFit(const TableEncoding& encoding)
      : encoding_(encoding), summaries_(encoding.numeric.size()) {}

  void add(const ColumnBlock& block) override {
    std::vector<double> numbers;
    for (size_t i = 0; i < summaries_.size(); ++i) {
      numbers_of(block.column(encoding_.numeric[i].name), numbers);
      summaries_[i].merge(summarise(numbers));
    }
  }
  void merge(const TransformFit& next) override {
    const auto& other = dynamic_cast<const TableFit&>(next);
    for (size_t i = 0; i < summaries_.size(); ++i) summaries_[i].merge(other.summaries_[i]);
  }
  const NumericSummary& summary(size_t column) const { return summaries_[column]; }

 private:
  const TableEncoding& encoding_;
  std::vector<NumericSummary> summaries_;
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

// Whether all of a column are 0 or 1, which are then the labels.
bool take_labels(const BlockColumn& column, std::vector<float>& labels) {
  if (!column.missing.empty()) return false;
  return std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_same_v<T, std::string_view>) {
          return false;
        } else {
          bool all = true;
          for (size_t r = 0; r < labels.size(); ++r) {
            labels[r] = static_cast<float>(values[r]);
            all = all && (values[r] == T{0} || values[r] == T{1});
          }
          return all;
        }
      },
      column.values);
}

void encode_labels(const TableEncoding& encoding, const ColumnBlock& block, std::vector<float>& labels) {
  labels.resize(static_cast<size_t>(block.records));
  if (take_labels(block.column(encoding.label), labels)) return;
  for_each_text(block.column(encoding.label), labels.size(), [&](size_t r, std::string_view text) {
    const auto value = parse_label(text);
    if (!value)
      throw BadValue(
          r, fmt::format("the label '{}' is '{}'; it must be 0 or 1{}", encoding.label, text.substr(0, 40),
                         is_missing(text) ? fmt::format("; to leave such records out, write "
                                                        "data.filter: \"{} is not missing\"",
                                                        encoding.label)
                                          : ""));
    labels[r] = *value;
  });
}

}  // namespace

std::vector<BlockField> EncodeTable::reads() const {
  std::vector<BlockField> fields;
  for (const NumericColumn& column : encoding_.numeric) fields.push_back({column.name, ValueType::kF64, 1});
  for (const std::string& name : encoding_.categorical) fields.push_back({name, ValueType::kBytes, 1});
  if (reads_label_) fields.push_back({encoding_.label, ValueType::kBytes, 1});
  return fields;
}

std::shared_ptr<const EncodeTable> EncodeTable::without_label() const {
  auto unlabelled = std::make_shared<EncodeTable>(*this);
  unlabelled->reads_label_ = false;
  return unlabelled;
}

std::vector<BlockField> EncodeTable::fit_reads() const {
  std::vector<BlockField> fields = reads();
  fields.resize(encoding_.numeric.size());
  return fields;
}

std::vector<Column> EncodeTable::columns() const {
  std::vector<Column> columns{{"dense", DType::kF32, {encoding_.dense()}}};
  for (size_t i = 0; i < encoding_.categorical.size(); ++i)
    columns.push_back({fmt::format("category.{}", i), DType::kI32, {}});
  columns.push_back({"labels", DType::kF32, {}});
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

void EncodeTable::apply(const BlockPlace&, ColumnBlock& block) const {
  thread_local ColumnBlock encoded;  // the two take turns, so that memory of large blocks is used again
  encoded.reset(made_fields());
  encoded.records = block.records;
  const size_t records = static_cast<size_t>(block.records);
  encode_dense(encoding_, block, encoded.columns[0].as<float>());
  for (size_t i = 0; i < encoding_.categorical.size(); ++i) {
    auto& buckets = encoded.columns[1 + i].as<int32_t>();
    buckets.resize(records);
    if (encoding_.ids.contains(encoding_.categorical[i])) {
      buckets = block.column(encoding_.categorical[i]).as<int32_t>();
      continue;
    }
    for_each_category(block.column(encoding_.categorical[i]), records, [&](size_t r, std::string_view text) {
      buckets[r] = category_bucket(text, encoding_.buckets);
    });
  }
  if (reads_label_)
    encode_labels(encoding_, block, encoded.columns.back().as<float>());
  else
    encoded.columns.back().as<float>().assign(records, 0.0f);
  std::swap(block, encoded);
}

std::unique_ptr<TransformFit> EncodeTable::begin_fit() const { return std::make_unique<TableFit>(encoding_); }

void EncodeTable::finish_fit(const TransformFit& fit) {
  const auto& table = dynamic_cast<const TableFit&>(fit);
  for (size_t i = 0; i < encoding_.numeric.size(); ++i)
    fit_numeric(options_, table.summary(i), encoding_.numeric[i]);
}

}  // namespace lockstep

#include "data/fraud_table.h"

#include <charconv>

#include "data/format/table_writer.h"

namespace lockstep {
namespace {

constexpr int64_t kRowsAtOnce = 4096;

std::vector<BlockField> fields() {
  std::vector<BlockField> fields;
  for (const FraudColumn& column : fraud_columns()) {
    const ValueType type = column.field == FraudField::kText    ? ValueType::kBytes
                           : column.field == FraudField::kWhole ? ValueType::kI64
                                                                : ValueType::kF64;
    fields.push_back({std::string(column.name), type, 1});
  }
  return fields;
}

template <typename T>
T number_in(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

class FraudTableWriter : public FraudWriter {
 public:
  explicit FraudTableWriter(std::string_view format) : format_(format) {}

  void begin(std::string&) override {
    writer_ = make_table_writer(format_, fields(), {.compression = Codec::kSnappy});
    block_.reset(fields());
  }

  void add(const FraudRow& row, std::string& out) override {
    for (size_t i = 0; i < kFraudColumns; ++i) {
      BlockColumn& column = block_.columns[i];
      const std::string_view text = row.text(i);
      if (column.type() == ValueType::kBytes) {
        block_.keep.push_back(std::make_shared<std::string>(text));
        column.as<std::string_view>().push_back(
            *std::static_pointer_cast<const std::string>(block_.keep.back()));
      } else if (column.type() == ValueType::kI64) {
        column.as<int64_t>().push_back(number_in<int64_t>(text));
      } else {
        column.as<double>().push_back(number_in<double>(text));
      }
      column.missing.push_back(text.empty());
    }
    if (++block_.records == kRowsAtOnce) flush(out);
  }

  void end(std::string& out) override {
    flush(out);
    writer_->finish(out);
  }

 private:
  void flush(std::string& out) {
    if (block_.records > 0) writer_->append(block_, out);
    block_.reset(fields());
  }

  std::string format_;
  std::unique_ptr<TableWriter> writer_;
  ColumnBlock block_;
};

}  // namespace

std::unique_ptr<FraudWriter> make_fraud_table_writer(std::string_view format) {
  return std::make_unique<FraudTableWriter>(format);
}

}  // namespace lockstep

#include "data/synthetic/fraud_writer.h"

#include <charconv>

#include "base/error.h"
#include "base/nearest.h"
#include "base/proto_writer.h"
#include "data/bytes/tfrecord_frame.h"
#include "data/format/table_writer.h"
#include "data/shards/formats.h"

namespace lockstep {
namespace {

class CsvWriter : public FraudWriter {
 public:
  void begin(std::string& out) override {
    for (size_t i = 0; i < kFraudColumns; ++i)
      out.append(fraud_columns()[i].name).append(i + 1 < kFraudColumns ? "," : "\n");
  }
  void add(const FraudRow& row, std::string& out) override { out += row.line(); }
};

class JsonlWriter : public FraudWriter {
 public:
  void add(const FraudRow& row, std::string& out) override {
    for (size_t i = 0; i < kFraudColumns; ++i) {
      const FraudColumn& column = fraud_columns()[i];
      const std::string_view text = row.text(i);
      const std::string_view quote = column.field == FraudField::kText ? "\"" : "";
      out.append(i == 0 ? "{\"" : ",\"").append(column.name).append("\":");
      if (text.empty())
        out += "null";
      else
        out.append(quote).append(text).append(quote);
    }
    out += "}\n";
  }
};

int64_t whole_number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

class TfrecordWriter : public FraudWriter {
 public:
  void add(const FraudRow& row, std::string& out) override {
    ProtoWriter features;
    for (size_t i = 0; i < kFraudColumns; ++i) {
      const FraudColumn& column = fraud_columns()[i];
      const std::string_view text = row.text(i);
      ProtoWriter list, feature, entry;
      const bool whole = column.field == FraudField::kWhole;
      if (whole && !text.empty())
        feature.add_bytes(3, list.add_int(1, whole_number(text)).bytes());
      else if (!text.empty())
        feature.add_bytes(1, list.add_bytes(1, text).bytes());
      entry.add_bytes(1, column.name).add_bytes(2, feature.bytes());
      features.add_bytes(1, entry.bytes());
    }
    append_tfrecord(ProtoWriter().add_bytes(1, features.bytes()).bytes(), out);
  }
};

struct Entry {
  std::string_view name;
  std::unique_ptr<FraudWriter> (*make)();
};

template <typename Writer>
std::unique_ptr<FraudWriter> make() {
  return std::make_unique<Writer>();
}

// A format is added by its line here.
constexpr Entry kWriters[] = {
    {"csv", make<CsvWriter>},
    {"jsonl", make<JsonlWriter>},
    {"tfrecord", make<TfrecordWriter>},
    {"block", [] { return make_fraud_table_writer("block"); }},
    {"parquet", [] { return make_fraud_table_writer("parquet"); }},
};

}  // namespace

void FraudWriter::begin(std::string&) {}
void FraudWriter::end(std::string&) {}

std::unique_ptr<FraudWriter> make_fraud_writer(std::string_view format) {
  for (const Entry& entry : kWriters)
    if (entry.name == format) return entry.make();
  throw UserError("transactions cannot be written as '{}'; {}", format, suggestion(format, fraud_formats()));
}

std::vector<std::string_view> fraud_formats() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kWriters) names.push_back(entry.name);
  return names;
}

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

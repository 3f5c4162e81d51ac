#include "data/synthetic/fraud_writer.h"

#include <algorithm>
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

namespace {

constexpr FraudColumn kColumns[kFraudColumns] = {
    {"time", FraudField::kText},
    {"card", FraudField::kText},
    {"merchant", FraudField::kText},
    {"category", FraudField::kText},
    {"country", FraudField::kText},
    {"home_country", FraudField::kText},
    {"channel", FraudField::kText},
    {"hour", FraudField::kWhole},
    {"amount", FraudField::kDecimal},
    {"seconds_since_last", FraudField::kWhole},
    {"previous_amount", FraudField::kDecimal},
    {"mean_amount", FraudField::kDecimal},
    {"count_1h", FraudField::kWhole},
    {"count_24h", FraudField::kWhole},
    {"known_merchant", FraudField::kWhole},
    {"is_fraud", FraudField::kWhole},
};

// Writes straight into the row's room, which is why it is quicker than a string that may have to grow.
class FieldWriter {
 public:
  FieldWriter(std::span<char> room, std::array<size_t, kFraudColumns>& ends)
      : room_(room), at_(room.data()), ends_(ends) {}

  FieldWriter& text(std::string_view text) {
    at_ = std::copy(text.begin(), text.end(), at_);
    return *this;
  }
  FieldWriter& number(int64_t value) {
    at_ = std::to_chars(at_, room_.data() + room_.size(), value).ptr;
    return *this;
  }
  // Not negative, with zeros before it up to that width.
  template <int kWidth>
  FieldWriter& padded(int64_t value) {
    constexpr std::array<uint32_t, 7> kPowers{1, 10, 100, 1000, 10000, 100000, 1000000};
    if (value >= kPowers[kWidth]) return number(value);
    auto rest = static_cast<uint32_t>(value);
    for (int place = kWidth - 1; place >= 0; --place, rest /= 10)
      at_[place] = static_cast<char>('0' + rest % 10);
    at_ += kWidth;
    return *this;
  }
  FieldWriter& money(int64_t cents) { return number(cents / 100).text(".").padded<2>(cents % 100); }
  // The generator covers fewer days than 2025 has.
  FieldWriter& time(int64_t seconds) {
    constexpr std::array<int, 12> kMonthDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t day = seconds / 86400;
    size_t month = 0;
    while (month < 11 && day >= kMonthDays[month]) day -= kMonthDays[month++];
    text("2025-").padded<2>(static_cast<int64_t>(month) + 1).text("-").padded<2>(day + 1);
    text("T").padded<2>(seconds / 3600 % 24).text(":").padded<2>(seconds / 60 % 60);
    return text(":").padded<2>(seconds % 60);
  }
  // The next field begins.
  void end() {
    ends_[column_++] = static_cast<size_t>(at_ - room_.data());
    *at_++ = column_ < kFraudColumns ? ',' : '\n';
  }
  size_t columns() const { return column_; }

 private:
  std::span<char> room_;
  char* at_;
  std::array<size_t, kFraudColumns>& ends_;
  size_t column_ = 0;
};

}  // namespace

std::span<const FraudColumn, kFraudColumns> fraud_columns() { return kColumns; }

void FraudRow::set(const fraud::World& world, const fraud::Transaction& t) {
  FieldWriter field(text_, ends_);
  field.time(t.time).end();
  field.text("k").padded<6>(t.card).end();
  field.text("m").padded<5>(t.merchant).end();
  field.text(fraud::categories()[world.merchant(t.merchant).category].name).end();
  field.text(fraud::countries()[t.country].code).end();
  field.text(fraud::countries()[world.card(t.card).home].code).end();
  field.text(fraud::name_of(t.channel)).end();
  field.number(t.time / 3600 % 24).end();
  field.money(t.cents).end();
  if (!t.first) field.number(t.seconds_since_last);
  field.end();
  if (!t.first) field.money(t.previous_cents);
  field.end();
  if (!t.first) field.money(t.mean_cents);
  field.end();
  field.number(t.last_hour).end();
  field.number(t.last_day).end();
  field.number(t.known_merchant).end();
  field.number(t.fraud).end();
  LOCKSTEP_CHECK(field.columns() == kFraudColumns, "{} fields of a transaction", field.columns());
}

}  // namespace lockstep

#include "data/fraud_row.h"

#include <charconv>

#include "base/error.h"

namespace lockstep {
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

class FieldWriter {
 public:
  FieldWriter(std::string& out, std::array<size_t, kFraudColumns>& ends) : out_(out), ends_(ends) {
    out_.clear();
  }

  FieldWriter& text(std::string_view text) {
    out_.append(text);
    return *this;
  }
  FieldWriter& number(int64_t value, int width = 0) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    for (auto missing = width - (end - digits.data()); missing > 0; --missing) out_.push_back('0');
    return text({digits.data(), static_cast<size_t>(end - digits.data())});
  }
  FieldWriter& money(int64_t cents) { return number(cents / 100).text(".").number(cents % 100, 2); }
  // The generator covers fewer days than 2025 has.
  FieldWriter& time(int64_t seconds) {
    constexpr std::array<int, 12> kMonthDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t day = seconds / 86400;
    size_t month = 0;
    while (month < 11 && day >= kMonthDays[month]) day -= kMonthDays[month++];
    text("2025-").number(static_cast<int64_t>(month) + 1, 2).text("-").number(day + 1, 2);
    text("T").number(seconds / 3600 % 24, 2).text(":").number(seconds / 60 % 60, 2);
    return text(":").number(seconds % 60, 2);
  }
  // The next field begins.
  void end() { ends_[column_++] = out_.size(); }
  size_t columns() const { return column_; }

 private:
  std::string& out_;
  std::array<size_t, kFraudColumns>& ends_;
  size_t column_ = 0;
};

}  // namespace

std::span<const FraudColumn, kFraudColumns> fraud_columns() { return kColumns; }

void FraudRow::set(const fraud::World& world, const fraud::Transaction& t) {
  FieldWriter field(text_, ends_);
  field.time(t.time).end();
  field.text("k").number(t.card, 6).end();
  field.text("m").number(t.merchant, 5).end();
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

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "data/synthetic/fraud_writer.h"

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

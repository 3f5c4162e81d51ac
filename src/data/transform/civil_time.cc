#include "data/transform/civil_time.h"

#include <chrono>

namespace lockstep {
namespace {

namespace chrono = std::chrono;

constexpr int64_t kDay = 86400;

// Takes text apart from the left.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  char peek() const { return text_.empty() ? '\0' : text_[0]; }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Exactly that many digits.
  std::optional<int> number(size_t digits) {
    if (text_.size() < digits) return {};
    int value = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return {};
      value = value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(digits);
    return value;
  }
  void pass_digits() {
    while (peek() >= '0' && peek() <= '9') text_.remove_prefix(1);
  }

 private:
  std::string_view text_;
};

std::optional<int64_t> date_of(Cursor& text) {
  const auto year = text.number(4);
  if (!year || !text.take('-')) return {};
  const auto month = text.number(2);
  if (!month || !text.take('-')) return {};
  const auto day = text.number(2);
  if (!day) return {};
  const chrono::year_month_day date{chrono::year(*year), chrono::month(static_cast<unsigned>(*month)),
                                    chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return {};
  return chrono::sys_days(date).time_since_epoch().count() * kDay;
}

std::optional<int64_t> time_of_day(Cursor& text) {
  const auto hour = text.number(2);
  if (!hour || !text.take(':')) return {};
  const auto minute = text.number(2);
  int second = 0;
  if (minute && text.take(':')) {
    const auto found = text.number(2);
    if (!found) return {};
    second = *found;
    if (text.take('.')) text.pass_digits();
  }
  if (!minute || *hour > 23 || *minute > 59 || second > 59) return {};
  return *hour * 3600 + *minute * 60 + second;
}

// What a time of that zone is ahead of UTC.
std::optional<int64_t> offset_of(Cursor& text) {
  if (text.at_end() || text.take('Z')) return 0;
  const bool ahead = text.peek() == '+';
  if (!text.take('+') && !text.take('-')) return {};
  const auto hour = text.number(2);
  if (!hour) return {};
  int minute = 0;
  if (!text.at_end()) {
    text.take(':');
    const auto found = text.number(2);
    if (!found) return {};
    minute = *found;
  }
  if (*hour > 23 || minute > 59) return {};
  const int64_t offset = *hour * 3600 + minute * 60;
  return ahead ? offset : -offset;
}

}  // namespace

std::optional<int64_t> parse_time(std::string_view text) {
  Cursor cursor(text);
  const auto date = date_of(cursor);
  if (!date || cursor.at_end()) return date;
  if (!cursor.take('T') && !cursor.take(' ')) return {};
  const auto time = time_of_day(cursor);
  if (!time) return {};
  const auto offset = offset_of(cursor);
  if (!offset || !cursor.at_end()) return {};
  return *date + *time - *offset;
}

CivilTime civil_time(int64_t seconds) {
  const int64_t days = seconds >= 0 ? seconds / kDay : -((-seconds + kDay - 1) / kDay);
  const auto rest = static_cast<int>(seconds - days * kDay);
  const chrono::sys_days day{chrono::days(days)};
  const chrono::year_month_day date{day};
  const chrono::sys_days new_year{chrono::year_month_day(date.year(), chrono::January, chrono::day(1))};
  CivilTime time;
  time.year = static_cast<int>(date.year());
  time.month = static_cast<int>(static_cast<unsigned>(date.month()));
  time.day = static_cast<int>(static_cast<unsigned>(date.day()));
  time.day_of_year = static_cast<int>((day - new_year).count()) + 1;
  time.weekday = static_cast<int>(chrono::weekday(day).iso_encoding()) - 1;
  time.hour = rest / 3600;
  time.minute = rest / 60 % 60;
  time.second = rest % 60;
  return time;
}

}  // namespace lockstep

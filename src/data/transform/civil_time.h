// Moments as people write them, in UTC. There is no table of time zones, only offsets that the text itself
// names, and no leap seconds.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

// Seconds since 1970-01-01T00:00:00 UTC, rounded down, of a date or a time as ISO 8601 has it: 2025-01-31,
// 2025-01-31T08:05, 2025-01-31 08:05:09.5, each time with Z, +02, +0200 or +02:00, or without: then it is
// UTC. Years from 0000 to 9999. Nothing for any other text.
std::optional<int64_t> parse_time(std::string_view text);

struct CivilTime {
  int64_t year = 0;
  int month = 1;        // 1 to 12
  int day = 1;          // 1 to 31
  int day_of_year = 1;  // 1 to 366
  int weekday = 0;      // 0 is Monday
  int hour = 0, minute = 0, second = 0;
};
// Of any moment within about 20,000 years of 1970.
CivilTime civil_time(int64_t seconds);

}  // namespace lockstep

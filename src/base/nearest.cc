#include "base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace lockstep {

int64_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

std::string suggestion(std::string_view wrong, std::span<const std::string_view> known) {
  std::string_view best;
  // Longer words may be further off; a word with nothing in common is not worth suggesting.
  int64_t best_distance = std::max<int64_t>(2, static_cast<int64_t>(wrong.size()) / 3) + 1;
  for (const std::string_view name : known) {
    const int64_t distance = edit_distance(wrong, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  if (!best.empty()) return fmt::format("did you mean {}?", best);
  return fmt::format("known: {}", fmt::join(known, ", "));
}

std::vector<int64_t> nearest_divisors(int64_t whole, int64_t wanted) {
  int64_t below = 1, above = whole;
  for (int64_t d = 1; d * d <= whole; ++d) {
    if (whole % d != 0) continue;
    for (const int64_t divisor : {d, whole / d}) {
      if (divisor <= wanted) below = std::max(below, divisor);
      if (divisor >= wanted) above = std::min(above, divisor);
    }
  }
  if (wanted > whole) return {whole};
  return below == above ? std::vector{below} : std::vector{below, above};
}

}  // namespace lockstep

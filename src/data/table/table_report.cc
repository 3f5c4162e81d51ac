#include "data/table/table_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/number_text.h"

namespace lockstep {

std::string_view name_of(ColumnRole role) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"numeric", "categorical", "label", "text", "weight", "for transforms"});
  return kNames[static_cast<size_t>(role)];
}

int64_t TableReport::count(ColumnRole role) const {
  return std::count_if(used.begin(), used.end(),
                       [&](const UsedColumn& column) { return column.role == role; });
}

std::string facts_text(const ColumnFacts& facts) {
  std::string text;
  if (facts.smallest)
    text = fmt::format("{} to {}, ", short_number(*facts.smallest, 6), short_number(*facts.largest, 6));
  // A share that is there is never shown as none.
  const double share = facts.missing_share();
  text += facts.missing == 0 ? "none missing"
          : share < 1e-4     ? fmt::format("{} of {} missing", facts.missing, facts.records)
                             : fmt::format("{} % missing", short_number(100 * share));
  return text + fmt::format(", {}{} different value{}", facts.exact ? "" : "about ", facts.distinct,
                            facts.distinct == 1 ? "" : "s");
}

}  // namespace lockstep

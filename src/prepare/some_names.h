// Lists of names in messages, of which there may be hundreds.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep {

inline std::vector<std::string> first_few(const std::vector<std::string>& names, size_t most = 8) {
  std::vector<std::string> few(names.begin(),
                               names.begin() + static_cast<int64_t>(std::min(names.size(), most)));
  if (names.size() > most) few.push_back(fmt::format("and {} more", names.size() - most));
  return few;
}

// "a, b, c and 5 more".
inline std::string some_names(const std::vector<std::string>& names, size_t most = 8) {
  const size_t shown = std::min(names.size(), most);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<int64_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace lockstep

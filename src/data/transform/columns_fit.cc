#include "data/transform/columns_fit.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace lockstep {

std::string fitted_lines(const std::vector<std::string>& columns, const FittedNumbers& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i)
    text += fmt::format("column {}: {}\n", columns[i], fmt::join(numbers[i], " "));
  return text;
}

FittedNumbers read_fitted_lines(std::string_view text, const std::vector<std::string>& columns,
                                int64_t count) {
  FittedNumbers numbers;
  std::string_view rest = text;
  for (const std::string& column : columns) {
    const std::string begin = fmt::format("column {}:", column);
    const size_t line = rest.find('\n');
    if (!rest.starts_with(begin) || line == std::string_view::npos) break;
    std::string_view values = rest.substr(begin.size(), line - begin.size());
    rest.remove_prefix(line + 1);
    numbers.emplace_back();
    while (values.size() > 1) {
      double value = 0;
      const auto [end, failure] =
          std::from_chars(values.data() + 1, values.data() + values.size(), value);  // behind a space
      if (failure != std::errc() || !std::isfinite(value)) break;
      numbers.back().push_back(value);
      values.remove_prefix(static_cast<size_t>(end - values.data()));
    }
    if (count >= 0 && static_cast<int64_t>(numbers.back().size()) != count)
      throw UserError("column '{}' has {} constants, not {}", column, numbers.back().size(), count);
  }
  // Printed again it must be the same: then nothing was passed over.
  if (numbers.size() != columns.size() || fitted_lines(columns, numbers) != text)
    throw UserError("the constants are not those of these columns");
  return numbers;
}

}  // namespace lockstep

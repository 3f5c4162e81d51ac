// Fitted numbers as text and back, with every bit: a line for each column, its name and its numbers.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

using FittedNumbers = std::vector<std::vector<double>>;  // by column

// Empty where nothing is fitted yet.
std::string fitted_lines(const std::vector<std::string>& columns, const FittedNumbers& numbers);
// Throws UserError unless the text is that of these columns, each with `count` finite numbers (-1: any).
FittedNumbers read_fitted_lines(std::string_view text, const std::vector<std::string>& columns,
                                int64_t count);

}  // namespace lockstep

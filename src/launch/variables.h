// Environment variables as plain data, so that everything that reads them is a function of its arguments.
//
// An empty variable counts as one that is not set: shells and job templates leave them behind.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

using Variables = std::map<std::string, std::string, std::less<>>;

// Those of this process.
Variables process_variables();

std::optional<std::string_view> find_variable(const Variables& variables, std::string_view name);

// A whole number from `least` to `most`. UserError names the variable, its value and what would be accepted.
std::optional<int64_t> find_integer(const Variables& variables, std::string_view name, int64_t least,
                                    int64_t most);
// The same for a variable that must be there because `because` is.
int64_t need_integer(const Variables& variables, std::string_view name, int64_t least, int64_t most,
                     std::string_view because);

// The text cut to a length that fits into an error, in quotes.
std::string in_quotes(std::string_view text);

}  // namespace lockstep

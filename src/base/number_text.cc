#include "base/number_text.h"

#include <fmt/format.h>

#include <cmath>

namespace lockstep {

std::string short_number(double value, int digits) {
  if (std::isnan(value)) return "nan";  // its sign means nothing and differs between machines
  if (!std::isfinite(value) || value == 0) return fmt::format("{:g}", std::abs(value) == 0 ? 0.0 : value);
  // Rounded first: 0.00999 to two digits is 0.01, and that is not written as a power.
  const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
  const size_t e = scientific.find('e');
  const int exponent = std::stoi(scientific.substr(e + 1));
  if (exponent >= -2 && exponent < digits) return fmt::format("{:.{}g}", std::stod(scientific), digits);
  std::string mantissa = scientific.substr(0, e);
  if (mantissa.find('.') != std::string::npos) mantissa.erase(mantissa.find_last_not_of('0') + 1);
  if (mantissa.back() == '.') mantissa.pop_back();
  return fmt::format("{}e{}", mantissa, exponent);
}

}  // namespace lockstep

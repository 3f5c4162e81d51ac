#include "base/number_text.h"

#include <fmt/format.h>

#include <array>
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

std::string bytes_text(int64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(amount) >= 1023.5 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  // Four digits, so that 1023 MiB is not 1.02e3.
  return fmt::format("{} {}", short_number(amount, amount >= 999.5 ? 4 : 3), kUnits[unit]);
}

}  // namespace lockstep

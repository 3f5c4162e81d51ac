#include "run/pace.h"

#include <charconv>
#include <string_view>
#include <thread>

#include "base/error.h"

namespace lockstep {

Pace::Pace(int64_t local_rank, const Variables& variables) {
  constexpr const char* kName = "LOCKSTEP_TEST_PACE";
  const auto found = find_variable(variables, kName);
  if (!found) return;
  std::string_view rest = *found;
  for (int64_t rank = 0; !rest.empty(); ++rank) {
    const std::string_view one = rest.substr(0, rest.find(','));
    double seconds = 0;
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), seconds);
    if (error != std::errc() || end != one.data() + one.size() || !(seconds >= 0 && seconds < 3600))
      throw UserError("{}={}: '{}' is no number of seconds", kName, *found, one);
    if (rank == local_rank) seconds_ = seconds;
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  }
}

void Pace::wait(int64_t microbatches) const {
  if (seconds_ > 0)
    std::this_thread::sleep_until(
        start_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                     std::chrono::duration<double>(seconds_ * static_cast<double>(microbatches))));
}

}  // namespace lockstep

#include "data/pipeline/input_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

constexpr double kKeepsUp = 0.01;

// What to change, by cause.
constexpr std::array<std::string_view, kWaitNames.size()> kAdvice{
    "reading the files is slow: put them on a faster disk, store them compressed, or raise data.readers",
    "decoding is slow: raise data.readers, or convert the files once to a format that is cheaper to decode",
    "transforms are slow: raise data.readers, or apply them once while the files are made",
    "gathering records into batches is slow: raise data.readers, or data.memory if blocks are read again",
    "batches are ready but wait for a slower one before them: raise data.memory, so that more are made ahead",
};

}  // namespace

InputReport InputReport::operator-(const InputReport& earlier) const {
  InputReport since = *this;
  since.batches -= earlier.batches;
  since.seconds -= earlier.seconds;
  for (size_t i = 0; i < waited.size(); ++i) since.waited[i] -= earlier.waited[i];
  since.consumer -= earlier.consumer;
  for (size_t i = 0; i < kStageNames.size(); ++i)
    since.stages.nanoseconds[i] -= earlier.stages.nanoseconds[i];
  since.stages.blocks -= earlier.stages.blocks;
  since.stages.bytes -= earlier.stages.bytes;
  since.stages.decoded -= earlier.stages.decoded;
  since.stages.used -= earlier.stages.used;
  return since;
}

double InputReport::waited_in_all() const { return std::accumulate(waited.begin(), waited.end(), 0.0); }

std::string_view InputReport::slowest() const {
  return kWaitNames[static_cast<size_t>(std::max_element(waited.begin(), waited.end()) - waited.begin())];
}

std::string InputReport::sentence() const {
  const double all = waited_in_all();
  const double share = seconds > 0 ? all / seconds : 0;
  if (share < kKeepsUp)
    return fmt::format("input keeps up: steps waited for it {:.1f} % of the time", 100 * share);
  const size_t worst = static_cast<size_t>(std::max_element(waited.begin(), waited.end()) - waited.begin());
  const std::string slow = fmt::format("steps waited for input {:.1f} % of the time, {:.0f} % of that for {}",
                                       100 * share, 100 * waited[worst] / all, kWaitNames[worst]);
  const auto is = [&](InputStage stage) { return worst == static_cast<size_t>(stage); };
  const double decoded =
      stages.used > 0 ? static_cast<double>(stages.decoded) / static_cast<double>(stages.used) : 0;
  if (decodes_again && decoded > 1.5)
    return fmt::format(
        "{}: every record is decoded {:.1f} times, because data.memory does not hold the blocks that are "
        "mixed with each other: raise it about that many times{}",
        slow, decoded, could_keep_rows ? ", or keep what is decoded with data.cache: rows" : "");
  if (could_keep_rows && (is(InputStage::kDecode) || is(InputStage::kTransform)))
    return fmt::format("{}: {}; or do it once with data.cache: rows", slow, kAdvice[worst]);
  return fmt::format("{}: {}", slow, kAdvice[worst]);
}

}  // namespace lockstep

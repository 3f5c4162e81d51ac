#include "train/state/run_downloads.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace lockstep {

void RunDownloads::add(std::byte* into, const std::byte* from, int64_t bytes) {
  if (backend_.memory() == MemoryKind::kHost) return backend_.download(into, from, bytes);
  runs_.push_back({into, from, bytes});
}

int64_t RunDownloads::finish() {
  std::ranges::sort(runs_, std::less<>(), &Run::from);
  int64_t transfers = 0;
  std::vector<std::byte> stretch;
  for (auto first = runs_.begin(); first != runs_.end();) {
    auto last = first;
    while (last + 1 != runs_.end() && last->from + last->bytes == (last + 1)->from) ++last;
    const int64_t bytes = last->from + last->bytes - first->from;
    ++transfers;
    if (first == last) {
      backend_.download(first->into, first->from, bytes);
    } else {
      stretch.resize(static_cast<size_t>(bytes));
      backend_.download(stretch.data(), first->from, bytes);
      for (auto run = first; run <= last; ++run)
        std::memcpy(run->into, stretch.data() + (run->from - first->from), static_cast<size_t>(run->bytes));
    }
    first = last + 1;
  }
  runs_.clear();
  return transfers;
}

}  // namespace lockstep

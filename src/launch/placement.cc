#include "launch/placement.h"

#include "base/error.h"

namespace lockstep {

std::string describe(const WorkerPlace& placement) {
  return fmt::format("{} ({}) says worker {} of {}", placement.family, placement.said, placement.rank,
                     placement.size);
}

int64_t workers_per_process(const WorkerPlace& placement, int64_t workers) {
  if (workers == placement.size) return 1;
  const bool one_per_host = placement.local_size == 1;
  if (one_per_host && workers > placement.size && workers % placement.size == 0)
    return workers / placement.size;
  throw UserError("strategy.workers is {}, but {} started {} ({}); set strategy.workers: {}{}", workers,
                  placement.family, placement.size, placement.said, placement.size,
                  one_per_host ? " or a multiple of it" : "");
}

}  // namespace lockstep

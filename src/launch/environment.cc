#include "launch/environment.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "launch/families.h"

namespace lockstep {
namespace {

// In the order in which they are believed when they say the same.
constexpr std::optional<WorkerPlace> (*kFamilies[])(const Variables&) = {
    torchrun_placement, slurm_placement,  open_mpi_placement,  mpich_placement,
    mvapich_placement,  vertex_placement, tf_config_placement,
};

bool same(const WorkerPlace& a, const WorkerPlace& b) { return a.rank == b.rank && a.size == b.size; }

// One process per host, each of which started this many workers. Which host is which is left open: torchrun
// numbers them as they come.
bool starts_hosts_of(const WorkerPlace& outer, const WorkerPlace& inner) {
  return outer.local_size == 1 && inner.size > outer.size && inner.size == outer.size * inner.local_size;
}

}  // namespace

std::optional<WorkerPlace> placement_from(const Variables& variables) {
  std::vector<WorkerPlace> found;
  for (const auto family : kFamilies)
    if (auto placement = family(variables)) found.push_back(std::move(*placement));
  if (found.empty()) {
    if (const auto rank = find_variable(variables, "PMIX_RANK"))
      throw UserError(
          "PMIX_RANK={} says that a launcher started this process as one of several, but not of how many; "
          "set "
          "RANK and WORLD_SIZE, or use a launcher that does (mpirun, srun, torchrun)",
          in_quotes(*rank));
    return std::nullopt;
  }
  // The first of the largest.
  const auto inner = std::max_element(found.begin(), found.end(),
                                      [](const auto& a, const auto& b) { return a.size < b.size; });
  for (const WorkerPlace& other : found)
    if (!same(other, *inner) && !starts_hosts_of(other, *inner))
      throw UserError(
          "the environment places this process twice: {}, but {}; unset the variables of the one that did "
          "not "
          "start it",
          describe(found.front()), describe(&other == &found.front() ? *inner : other));
  return *inner;
}

}  // namespace lockstep

// Fits transforms to the records of shards, in as few passes as their dependences allow: those that read
// nothing that another one has yet to learn are fitted together.
#pragma once
#include <memory>
#include <vector>

#include "data/shards/shard_set.h"
#include "data/transform/transform.h"

namespace lockstep {

struct FitOptions {
  int64_t records = 0;  // the first ones
  int threads = 1;
};

// Fits those that have something to fit and are not `ready`; these are marked ready then. The result is the
// same for any number of threads, and in every format that the same records are read from.
void fit_transforms(const ShardSet& shards, const std::vector<std::shared_ptr<Transform>>& transforms,
                    std::vector<bool>& ready, const FitOptions& options);

}  // namespace lockstep

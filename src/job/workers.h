// How many workers a job asks for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "job/spec.h"

namespace lockstep {

// Pools of workerPoolSpecs that train: the first worker's, and that of the others.
inline constexpr size_t kTrainingPools = 2;

// The pool of reduction servers, Vertex AI's position for them.
inline constexpr size_t kServerPool = 2;

// Whether workers push to parameter servers, each at its own pace: mode async, unless its bound is 0.
bool trains_async(const JobSpec& spec);

// strategy.workers, or one for every machine of the pools that train (0 and 1). Nothing: the job leaves it
// open. One that is split into stages or by matrices has at least
// as many as that takes. A cluster that has started the processes knows better than the pools.
std::optional<int64_t> wanted_workers(const JobSpec& spec);

// Workers of a mesh who share the leaves of a step: all of them over pipeline times tensor. Throws UserError
// where these do not divide the workers. Who trains asynchronously shares with nobody.
int64_t data_workers(const JobSpec& spec);

// strategy.tensor_leaves, or one for every tensor rank.
int64_t tensor_leaves(const JobSpec& spec);

// Fills in how gradients travel where pools say it: machines in pool 2 are Reduction Servers, unless
// strategy.workers replaces the pools or strategy.reduce.via is written. UserError for servers that nothing
// goes through.
void settle_servers(JobSpec& spec);

}  // namespace lockstep

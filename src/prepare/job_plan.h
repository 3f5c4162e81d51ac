// A job planned for a backend: all its plans and the memory they take, before any of it is taken.
#pragma once
#include "job/resolve.h"
#include "prepare/job_model.h"
#include "train/step/train_memory.h"

namespace lockstep {

// What the process takes beside its tensors: pages of the program and of its libraries, the job, graphs and
// plans. Measured on Debian 12: a run of a gpt with 4,000 parameters peaks 20.2 MiB above what its step
// takes.
inline constexpr int64_t kProgramBytes = int64_t{20} << 20;

struct JobPlan {
  TrainPlans train;
  TrainMemory memory;
  BesideSteps beside;
  std::optional<HostPlace> host;

  int64_t bytes() const { return memory.bytes() + beside.bytes(); }
  std::string table() const { return memory_table(train, memory, beside); }
};

// `host`: where the workers of a host hold the state together, the place of this one; `mesh_rank`:
// among all workers, of which the first evaluates; `shared`: with plans of the same job in other layouts.
// Throws UserError.
JobPlan plan_job(const JobSpec& spec, const ResolvedJob& job, const Model& model, const InputSizes& inputs,
                 Backend& backend, std::optional<HostPlace> host = {}, int mesh_rank = 0,
                 SharedGraphs* shared = nullptr);
// Whether the job keeps records to evaluate on.
bool evaluates(const JobSpec& spec);
// The place to plan with before any worker is there: all are on this machine.
std::optional<HostPlace> expected_host(const JobSpec& spec);

}  // namespace lockstep

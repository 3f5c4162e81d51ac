// A job planned for a backend: all its plans and the memory they take, before any of it is taken.
#pragma once
#include "job/resolve.h"
#include "run/job_model.h"
#include "train/train_memory.h"

namespace lockstep {

struct JobPlan {
  TrainPlans train;
  TrainMemory memory;
  int64_t evaluation = 0;  // bytes; 0 where the job evaluates nothing

  int64_t bytes() const { return memory.bytes() + evaluation; }
  std::string table() const { return memory_table(train, memory, evaluation); }
};

// Throws UserError.
// `options`: how it trains, where that is not what the job alone says.
JobPlan plan_job(const JobSpec& spec, const ResolvedJob& job, const Model& model, const InputSizes& inputs,
                 Backend& backend);
JobPlan plan_job(const JobSpec& spec, const TrainOptions& options, const Model& model,
                 const InputSizes& inputs, Backend& backend);

}  // namespace lockstep

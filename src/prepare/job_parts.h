// The parts that a job names, built and checked against each other: everything that exists before memory is
// taken for training.
#pragma once
#include <set>
#include <string>

#include "data/open/open.h"
#include "job/resolve.h"
#include "model/model.h"
#include "prepare/host_share.h"
#include "prepare/initial_weights.h"
#include "prepare/job_model.h"
#include "prepare/pretrained.h"
#include "train/checkpoint/identity.h"
#include "train/rate/schedule.h"
#include "train/step/train_plans.h"

namespace lockstep {

// Whether what is found out of data files is kept for later starts. kNo: what is kept already is used, and
// nothing is written.
enum class Keeping : uint8_t { kYes, kNo };

struct JobParts {
  JobSpec spec;
  HostShare host;
  Data data;
  InputSizes inputs;
  Model model;
  ResolvedJob resolved;
  Schedule schedule;
  TrainOptions options;
  Identity identity;                           // without the weights that files give, before read_pretrained
  std::optional<InitialWeights> initial = {};  // of another run; nothing: weights are drawn
  std::optional<PretrainedWeights> pretrained = {};  // of files; what `initial` takes comes on top

  int64_t steps() const { return *resolved.steps; }
};

// For a worker with this part of its host. Throws UserError. A worker that does not lead gets no records to
// evaluate on, and draws no weights: the leader's are given to it.
JobParts build_parts(JobSpec spec, Backend& backend, const HostShare& host, bool leads = true,
                     Keeping keeping = Keeping::kYes);

// Reads the weights of the job's files, where it has any: their hash completes the identity, and they go into
// a step that has made none yet, where one is given. Of the leader.
void read_pretrained(JobParts& parts, TrainStep* into);
// With LoRA: what stays as it is in the folder that the job names, so that checkpoints need not hold it.
std::set<std::string> frozen_in_folder(const JobParts& parts);

}  // namespace lockstep

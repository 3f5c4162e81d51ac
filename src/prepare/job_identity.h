// The identity of a job: what may change the bits of its result (train/checkpoint/identity.h).
#pragma once
#include "data/open/open.h"
#include "job/resolve.h"
#include "model/model.h"
#include "train/checkpoint/identity.h"
#include "train/rate/schedule.h"

namespace lockstep {

// Changes when the same job gives other bits in a newer version of the program.
inline constexpr int kContractVersion = 1;

Identity job_identity(const JobSpec& spec, const ResolvedJob& job, const Schedule& schedule,
                      const Model& model, const Data& data, const std::string& architecture);

}  // namespace lockstep

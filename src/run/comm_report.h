// Where the time of several workers went: of the stages of a pipeline, and, from the times of buckets, the
// account of a run's communication (observe/comm_account.h).
#pragma once
#include "comm/group.h"
#include "observe/comm_account.h"
#include "prepare/job_parts.h"
#include "run/workers.h"
#include "train/step/train_step.h"

namespace lockstep {

// Of all stages of a pipeline, by its first worker's. All workers call it together.
std::vector<PipelineStageTimes> stage_times(const PipelineRunner& own, const MeshGroups& groups,
                                            const Workers& workers);

// How many hosts, or workers that share no memory, exchange data. All workers call it together.
int64_t count_hosts(Group& group);

// Of a mean step; nothing where gradients are not reduced in buckets while backward goes on. `setting`: hosts
// and servers; the rest is found here, coding measured on some values.
std::optional<CommunicationSummary> communication_summary(const JobParts& parts, const TrainStep& train,
                                                          CommSetting setting, double step_ms);

}  // namespace lockstep

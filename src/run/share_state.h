// Gives the leader's state to all workers: at the start, and after a rewind.
//
// Workers on other hosts may see no file of the run, so the leader alone reads checkpoints; what it has goes
// over the group. It is the same number of bytes whether a run begins or resumes.
#pragma once
#include "comm/group.h"
#include "run/run_state.h"
#include "train/train_step.h"

namespace lockstep {

// Every tensor of the state: parameters, statistics, optimizer, averages.
void share_tensors(Group& group, TrainStep& train);
// The tensors, the optimizer's count of steps, and what the run knows beside: the leader's, on everyone.
void share_state(Group& group, TrainStep& train, RunState& state);

}  // namespace lockstep

// Gives the leader's state to all workers: at the start, and after a rewind.
//
// Workers on other hosts may see no file of the run, so the leader alone reads checkpoints; what it has goes
// over the group.
#pragma once
#include "comm/group.h"
#include "run/run_state.h"
#include "train/step/train_step.h"

namespace lockstep {

// Parameters, statistics, averages: what a run begins with. The optimizer's state is zero then.
void share_weights(Group& group, TrainStep& train);
// Every tensor that is not split between workers, the optimizer's count of steps, and what the run knows
// beside: the leader's, on everyone.
void share_state(Group& group, TrainStep& train, RunState& state);

}  // namespace lockstep

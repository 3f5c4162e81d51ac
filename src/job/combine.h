// Puts together what several keys say at once, before values are converted.
#pragma once
#include "job/gather.h"

namespace lockstep {

// - global_batch from a per-device batch and gradient_accumulation_steps (times the workers), as other tools
// have it;
//   a global_batch that disagrees with them is a UserError.
// - betas from adam_beta1 and adam_beta2.
// - data.eval takes from data.train what it leaves out.
void combine(Gathered& gathered);

}  // namespace lockstep

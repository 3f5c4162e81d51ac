// The identity of a job: what may change the bits of its result (train/checkpoint/identity.h).
#pragma once
#include "data/open/open.h"
#include "job/resolve.h"
#include "model/model.h"
#include "train/checkpoint/identity.h"
#include "train/rate/schedule.h"

namespace lockstep {

// Changes when the same job gives other bits in a newer version of the program, or the identity says them in
// other fields. docs/checkpoints.md says what each brought.
inline constexpr int kContractVersion = 3;

// What the machine adds to the identity.
struct MachineArithmetic {
  std::string architecture;  // Backend::architecture
  std::string measured;      // prepare/arithmetic.h; empty: the architecture says it all
};

Identity job_identity(const JobSpec& spec, const ResolvedJob& job, const Schedule& schedule,
                      const Model& model, const Data& data, const MachineArithmetic& machine);

// Of the same job with another compression of gradients: that which `auto` was settled to.
void set_codec(Identity& identity, const ReduceSpec& reduce);

}  // namespace lockstep

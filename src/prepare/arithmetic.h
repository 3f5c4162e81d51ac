// The arithmetic that a job's kernels do on this machine, measured: one step of a small model of the job's
// family, in its precision, on fixed inputs, and the hash of every gradient and weight. Nothing else of the
// job goes in: what it sets is in the identity under its own name.
//
// It stands in the identity of a run in place of what the processor is able to do. Processors that round
// alike may then train one job together, whatever extensions they have that the job never uses; one that
// rounds otherwise is seen, whatever it is called. The products are small, so this is no proof for all
// shapes: workers still compare their weights at the end of a run.
#pragma once
#include <string>

#include "backend/backend.h"
#include "job/spec.h"

namespace lockstep {

// "fp32 0123456789abcdef". Empty where the backend's memory is not the host's: a GPU's architecture says
// which kernels its libraries choose. Takes about as long as one small step, and nothing afterwards.
std::string measured_arithmetic(const JobSpec& spec, Backend& backend);

}  // namespace lockstep

// The data that a job names, and what it says about the model's inputs.
#pragma once
#include "data/open.h"
#include "data/order/order.h"
#include "job/spec.h"
#include "run/job_model.h"

namespace lockstep {

// Reads or generates the records. Throws UserError that names file and line.
Data open_job_data(const JobSpec& spec);
// The order in which a job reads its training records.
Order job_order(const JobSpec& spec, const Source& source);
// The columns of a table; the defaults where the source has none.
InputSizes input_sizes(const Source& source);

}  // namespace lockstep

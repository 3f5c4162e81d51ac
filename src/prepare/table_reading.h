// How a job's tables are read: what separates the fields of CSV, and which texts mean a missing value.
#pragma once
#include "data/open/open.h"
#include "job/spec.h"

namespace lockstep {

// Throws UserError for a delimiter that is none.
void set_table_reading(const JobSpec& spec, DataOptions& options);

}  // namespace lockstep

// The data that a job names, and what it says about the model's inputs.
#pragma once
#include "data/open/open.h"
#include "data/order/step_order.h"
#include "job/spec.h"
#include "prepare/job_model.h"
#include "prepare/job_parts.h"

namespace lockstep {

// Whether there are records to evaluate on that only who evaluates opens: those in files of their own, and
// generated transactions.
bool evaluates_apart(const JobSpec& spec);
// What the job says about its data, in the terms of the parts that open it. Throws UserError for what does
// not hold together.
DataOptions job_data_options(const JobSpec& spec, const HostShare& host);
// Reads or generates the records. What lies apart to evaluate on is passed over by who does not evaluate.
// Throws UserError that names file and line.
Data open_job_data(const JobSpec& spec, const HostShare& host, bool evaluates = true,
                   const IndexProgress& progress = {}, const IndexProgress& cache_progress = {},
                   Keeping keeping = Keeping::kYes);
// The order in which a job reads its training records.
ReadOrder job_read_order(const JobSpec& spec, const Data& data);
StepOrder job_order(const JobParts& parts);
// The columns of a table and what its label asks for; the defaults where the data is no table.
InputSizes input_sizes(const Data& data);
// The same of records that are read as a run's were: `labels` are those of its table.
InputSizes input_sizes(const std::vector<Column>& columns, const std::optional<LabelEncoding>& labels);

}  // namespace lockstep

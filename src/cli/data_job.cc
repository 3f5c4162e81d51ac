#include "cli/data_job.h"

#include <CLI/CLI.hpp>

#include "job/parse.h"
#include "prepare/job_options.h"

namespace lockstep {

std::shared_ptr<DataJob> add_data_job(CLI::App& command) {
  auto job = std::make_shared<DataJob>();
  command.add_option("job", job->file, "the job file")->required();
  command
      .add_option("--set", job->overrides, "key=value, as in data.shuffle=none (may be given several times)")
      ->allow_extra_args(false);
  return job;
}

JobParts open_parts(const DataJob& job) {
  JobSpec spec = load_job(job.file, job.overrides);
  const HostShare host = expected_share(spec);
  const auto backend = make_backend(job_device(spec, host));
  return build_parts(std::move(spec), *backend, host);
}

}  // namespace lockstep

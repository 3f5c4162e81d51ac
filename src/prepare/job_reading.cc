#include "prepare/job_reading.h"

namespace lockstep {

JobReading::JobReading(const JobSpec& spec, const HostShare& host)
    : memory_(spec), processors_(host.processors) {
  if (spec.data.readers) processors_ = static_cast<int>(*spec.data.readers);
  pool_ = std::make_unique<ReaderPool>(processors_);
}

StreamOptions JobReading::options(int64_t budget) const {
  return {.pool = pool_.get(), .processors = processors_, .budget = budget};
}

}  // namespace lockstep

#include "run/job_reading.h"

#include <algorithm>

namespace lockstep {
namespace {

// Readers that wait for a disk or a network take no processor, so there may be more of them.
constexpr int kWaitingReaders = 4;

}  // namespace

JobReading::JobReading(const JobSpec& spec, const HostShare& host)
    : memory_(spec), processors_(host.processors) {
  const int most = std::min(1024, kWaitingReaders * processors_);
  pool_ = std::make_unique<ReaderPool>(static_cast<int>(spec.data.readers.value_or(most)));
  if (spec.data.readers) processors_ = static_cast<int>(*spec.data.readers);
}

StreamOptions JobReading::options(int64_t budget) const {
  return {.pool = pool_.get(), .processors = processors_, .budget = budget};
}

}  // namespace lockstep

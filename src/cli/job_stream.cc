#include "cli/job_stream.h"

#include <numeric>

namespace lockstep {

JobStream::JobStream(const JobSpec& spec, std::shared_ptr<const Data> data, int64_t batch)
    : data_(std::move(data)), order_(job_read_order(spec, *data_)), reading_(spec) {
  BatchPlan plan;
  plan.batches = int64_t{1} << 40;
  plan.records = [this, batch](int64_t number, std::vector<int64_t>& records, std::vector<int64_t>* epochs) {
    records.resize(static_cast<size_t>(batch));
    std::iota(records.begin(), records.end(), number * batch);
    order_.records_at(records, epochs);
  };
  stream_ = std::make_unique<BatchStream>(*data_->train, plan, reading_.train());
}

}  // namespace lockstep

#include "cli/job_stream.h"

#include <numeric>

namespace lockstep {

JobStream::JobStream(const JobSpec& spec, std::shared_ptr<const Data> data, int64_t batch)
    : data_(std::move(data)), order_(job_read_order(spec, *data_)), reading_(spec, expected_share(spec)) {
  BatchPlan plan;
  plan.batches = int64_t{1} << 40;
  plan.rows = batch;
  plan.records = [this, batch](int64_t number, int64_t row, std::span<int64_t> records,
                               std::vector<int64_t>* epochs) {
    std::iota(records.begin(), records.end(), number * batch + row);
    order_.records_at(records, epochs);
  };
  stream_ = std::make_unique<BatchStream>(*data_->train, plan, reading_.train());
}

}  // namespace lockstep

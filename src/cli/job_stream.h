// JobStream: a job's training records opened and read in batches of train.microbatch, without a model: what
// the measurements of the input read from.
#pragma once
#include <memory>

#include "data/stream/batch_stream.h"
#include "job/spec.h"
#include "prepare/job_data.h"
#include "prepare/job_reading.h"

namespace lockstep {

class JobStream {
 public:
  explicit JobStream(const JobSpec& spec)
      : JobStream(spec, std::make_shared<const Data>(open_job_data(spec, expected_share(spec))),
                  spec.train.microbatch) {}
  // Of data that is open already, in batches of that many records.
  JobStream(const JobSpec& spec, std::shared_ptr<const Data> data, int64_t batch);

  const Source& source() const { return *data_->train; }
  // Batch n has the records at positions [n * batch, (n + 1) * batch).
  const Batch& get(int64_t number) { return stream_->get(number); }
  InputReport report() const { return stream_->report(); }

 private:
  std::shared_ptr<const Data> data_;
  ReadOrder order_;
  JobReading reading_;
  std::unique_ptr<BatchStream> stream_;
};

}  // namespace lockstep

// JobReading: the threads and the memory that a job gives to reading its data.
#pragma once
#include <memory>

#include "data/stream/batch_stream.h"
#include "data/stream/reader_pool.h"
#include "job/spec.h"
#include "prepare/host_share.h"

namespace lockstep {

// data.memory, divided: most of it is for training records, which are read in a mixed order. Batches take
// theirs out of what blocks have.
struct ReadingMemory {
  static constexpr int64_t kEvalShare = 8;

  explicit ReadingMemory(const JobSpec& spec)
      : eval(spec.data.memory / kEvalShare),
        train(spec.data.memory - eval),
        eval_batches(eval / 2),
        train_batches(train / 8) {}

  int64_t eval, train;
  int64_t eval_batches, train_batches;
};

class JobReading {
 public:
  JobReading(const JobSpec& spec, const HostShare& host);

  StreamOptions train() const { return options(memory_.train_batches); }
  StreamOptions eval() const { return options(memory_.eval_batches); }

 private:
  StreamOptions options(int64_t budget) const;

  ReadingMemory memory_;
  int processors_;
  std::unique_ptr<ReaderPool> pool_;
};

}  // namespace lockstep

// JobReading: the threads and the memory that a job gives to reading its data.
#pragma once
#include <memory>

#include "data/pipeline/batch_stream.h"
#include "data/pipeline/reader_pool.h"
#include "job/spec.h"

namespace lockstep {

// data.memory, divided: most of it holds blocks of training records, which are read in a mixed order.
struct ReadingMemory {
  explicit ReadingMemory(const JobSpec& spec)
      : train_batches(spec.data.memory / 16),
        eval_batches(spec.data.memory / 16),
        eval_blocks(spec.data.memory / 8),
        train_blocks(spec.data.memory - train_batches - eval_batches - eval_blocks) {}

  int64_t train_batches, eval_batches, eval_blocks, train_blocks;
};

class JobReading {
 public:
  explicit JobReading(const JobSpec& spec);

  StreamOptions train() const { return options(memory_.train_batches); }
  StreamOptions eval() const { return options(memory_.eval_batches); }

 private:
  StreamOptions options(int64_t budget) const;

  ReadingMemory memory_;
  int processors_;
  std::unique_ptr<ReaderPool> pool_;
};

}  // namespace lockstep

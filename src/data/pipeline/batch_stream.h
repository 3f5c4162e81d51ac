// BatchStream: the batches of a run, made ahead of time by reader threads and handed over in order.
//
// What batch n holds is given by the plan alone; readers take numbers one after another, make their batches
// at the same time, and the caller gets them by number. How many are made ahead and by how many readers grows
// where the caller had to wait, under the limit of bytes. A batch that nobody has begun is made by the caller
// itself, so that without readers, or where they find no time, nothing is slower than without a stream. What
// goes wrong in making a batch is thrown when that batch is asked for, never before.
#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "data/pipeline/input_report.h"
#include "data/pipeline/reader_pool.h"
#include "data/source.h"

namespace lockstep {

// Which records make which batch.
struct BatchPlan {
  int64_t batches = 0;
  // Called from many threads. Epochs are asked for where the source varies with them; otherwise null.
  std::function<void(int64_t batch, std::vector<int64_t>& records, std::vector<int64_t>* epochs)> records;
};

struct StreamOptions {
  ReaderPool* pool = nullptr;          // null: every batch is made when it is asked for
  int processors = 1;                  // readers beyond these are taken where fetching is what takes time
  int64_t budget = int64_t{64} << 20;  // bytes of batches; one is made in any case
  int most_ahead = 64;                 // batches
};

class BatchStream {
 public:
  // Source and pool must outlive the stream.
  BatchStream(const Source& source, BatchPlan plan, const StreamOptions& options);
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  // Valid until the next call. The batches that follow this one are made ahead; asking for another one than
  // the next begins anew there.
  const Batch& get(int64_t number);

  InputReport report() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Made {
    std::unique_ptr<Batch> batch;
    std::exception_ptr error;
  };

  Made make(int64_t number, std::unique_ptr<Batch> reused);
  std::unique_ptr<Batch> reused_batch();
  // All below with the lock held.
  void seek(int64_t number);
  int64_t end_of_ahead() const;
  void call_readers();
  void read_ahead();  // what a reader does; takes the lock itself
  void wait_for(int64_t number, std::unique_lock<std::mutex>& lock);
  void take_more();
  void note_full();

  const Source& source_;
  BatchPlan plan_;
  StreamOptions options_;
  int64_t most_ahead_;
  mutable StageCounters own_counters_;  // of sources that have none
  const StageCounters& stages_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<int64_t, Made> ready_;
  std::vector<std::unique_ptr<Batch>> spare_;
  std::unique_ptr<Batch> current_;
  int64_t next_ = 0;     // the number that should be asked for next
  int64_t claimed_ = 0;  // those below are made or being made
  int64_t turn_ = 0;     // counts the times that it began anew
  bool waits_ = false;   // the caller does
  bool closing_ = false;
  int64_t ahead_ = 0;
  int readers_ = 0;  // at most at once
  int busy_ = 0;     // readers at work
  Clock::time_point full_since_;
  bool full_ = false;
  Clock::time_point behind_since_;  // all but the one that is waited for are ready
  bool behind_ = false;
  InputReport report_;
  Clock::time_point started_;
};

}  // namespace lockstep

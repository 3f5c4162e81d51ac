// BatchStream: the batches of a run, made ahead of time by reader threads and handed over in order.
//
// What batch n holds is given by the plan alone. A batch is made in pieces (batch_pieces.h), which readers
// take in the order of the batches, so all of them work on the one that is needed first; the caller, where it
// has to wait, takes pieces of it too: without readers, or where they find no time, nothing is slower than
// without a stream. Where readers have made all batches that they may, they plan further and have the source
// load what the next batches need. What goes wrong in making a batch is thrown when that batch is asked for,
// never before; of several faults, that of the first piece.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "data/stream/batch_pieces.h"
#include "data/stream/input_report.h"
#include "data/stream/reader_pool.h"

namespace lockstep {

struct StreamOptions {
  ReaderPool* pool = nullptr;          // null: every batch is made when it is asked for
  int processors = 1;                  // that readers of this stream may keep busy
  int64_t budget = int64_t{64} << 20;  // bytes of batches; the one in use and the next are made in any case
  int64_t most_ahead = 8;              // batches; those that are used again soon are still in a cache
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
  // All with the lock held; those that take it let it go while they work.
  void seek(int64_t batch, std::unique_lock<std::mutex>& lock);
  void finish(OpenBatch& open, std::unique_lock<std::mutex>& lock);
  int64_t end_of_ahead() const;  // pieces before it are to be made now
  bool can_make() const;
  void make_next(std::unique_lock<std::mutex>& lock);
  void plan_next(std::unique_lock<std::mutex>& lock);
  bool look_ahead(std::unique_lock<std::mutex>& lock);  // false: there is nothing to do
  void forget_planned();
  void note_if_behind();
  void call_readers();
  void read_ahead();  // what a reader does; takes the lock itself

  const Source& source_;
  StreamOptions options_;
  int readers_;
  int64_t ahead_;  // batches that are made ahead
  BatchPieces pieces_;

  mutable std::mutex mutex_;
  std::condition_variable changed_, planned_more_;
  InputWaits waits_;
  std::unique_ptr<Batch> current_;
  std::deque<PlannedPiece> planned_;  // pieces from claimed_ on, of which the source knows
  bool planning_ = false;             // the piece after these
  int64_t next_ = 0;                  // the batch that should be asked for next
  int64_t claimed_ = 0;               // pieces below are made or being made
  bool caller_waits_ = false;
  bool stopping_ = false;  // readers are to leave
  int busy_ = 0;           // readers at work
  int most_busy_ = 0;
};

}  // namespace lockstep

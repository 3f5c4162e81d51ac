// BatchStream: the batches of a run, made ahead of time by reader threads and handed over in order.
//
// What batch n holds is given by the plan alone. A batch is made in pieces, ranges of its rows, which fill
// its buffers in place. Readers take pieces in the order of the batches, so all of them work on the one that
// is needed first; the caller, where it has to wait, takes pieces of it too: without readers, or where they
// find no time, nothing is slower than without a stream. How many readers there are and how far ahead they
// work tunes itself (pipeline/reading_knobs.h) under the limit of bytes. Where the source wants to know what
// will be read, pieces are planned further ahead than they are made; and where readers have made all batches
// that they may, they have the source load what the next ones need. What goes wrong in making a batch is
// thrown when that batch is asked for, never before; of several faults, that of the first piece.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "data/pipeline/input_report.h"
#include "data/pipeline/reader_pool.h"
#include "data/pipeline/reading_knobs.h"
#include "data/source.h"

namespace lockstep {

// Which records make which batch.
struct BatchPlan {
  int64_t batches = 0;
  int64_t rows = 0;  // of a batch
  int64_t last = 0;  // rows of the last one, where it has fewer
  // The records of the batch's rows from `first` on. Called from many threads. Epochs are asked for where the
  // source varies with them; otherwise null.
  std::function<void(int64_t batch, int64_t first, std::span<int64_t> records, std::vector<int64_t>* epochs)>
      records;
};

struct StreamOptions {
  ReaderPool* pool = nullptr;          // null: every batch is made when it is asked for
  int processors = 1;                  // readers beyond these are taken where fetching is what takes time
  int64_t budget = int64_t{64} << 20;  // bytes of batches; the one in use and the next are made in any case
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

  // A batch that is being made.
  struct Open {
    std::unique_ptr<Batch> batch;
    int64_t left = 0;  // rows that are not filled yet
    std::exception_ptr error;
    int64_t error_row = 0;
  };
  // The records of a piece.
  struct Planned {
    std::vector<int64_t> records, epochs;
    int64_t bytes() const { return static_cast<int64_t>((records.size() + epochs.size()) * sizeof(int64_t)); }
  };

  int64_t rows_of(int64_t batch) const;
  void plan_piece(int64_t piece, bool epochs, Planned& planned) const;
  void fill_piece(int64_t piece, Open& open, Planned& planned) const;
  StageTimes stages() const;
  // All below with the lock held; those that take it let it go while they work.
  Open& open(int64_t batch);
  void close(std::unique_ptr<Batch> batch);
  void seek(int64_t batch, std::unique_lock<std::mutex>& lock);
  int64_t end_of_ahead() const;  // pieces before it are to be made now
  bool can_make() const;
  bool should_plan() const;
  void make_next(std::unique_lock<std::mutex>& lock);
  void plan_next(std::unique_lock<std::mutex>& lock);
  bool look_ahead(std::unique_lock<std::mutex>& lock);  // false: there is nothing to do
  void forget_planned();
  void finish(Open& open, std::unique_lock<std::mutex>& lock);
  void call_readers();
  void read_ahead();  // what a reader does; takes the lock itself
  void look_at_readers(double seconds, double processor);
  void note_behind();
  void note_calm();

  const Source& source_;
  BatchPlan plan_;
  StreamOptions options_;
  int64_t batch_bytes_;
  int64_t piece_rows_;
  int64_t pieces_;                      // of a batch
  mutable StageCounters own_counters_;  // planning, and all of sources that have none
  const StageCounters& source_counters_;
  ReadingKnobs knobs_;

  mutable std::mutex mutex_;
  std::condition_variable changed_, planned_more_;
  std::unordered_map<int64_t, Open> open_;
  std::vector<std::unique_ptr<Batch>> spare_;
  std::unique_ptr<Batch> current_;
  std::deque<Planned> planned_;  // pieces from claimed_ on, of which the source knows
  bool planning_ = false;        // the piece after these
  int64_t next_ = 0;             // the batch that should be asked for next
  int64_t claimed_ = 0;          // pieces below are made or being made
  int64_t begun_ = 0;            // the piece that reading began with
  bool waits_ = false;           // the caller does
  bool stopping_ = false;        // readers are to leave
  int busy_ = 0;                 // readers at work
  int64_t without_rest_ = 0;     // batches that were ready, each time with all readers at work
  // Seconds that the caller lately spent with its batches, and waiting for them.
  double with_batches_ = 0, for_batches_ = 0;
  Clock::time_point handed_over_;
  Clock::time_point full_since_;
  bool full_ = false;
  bool was_full_ = false;           // since the caller last waited
  Clock::time_point behind_since_;  // all but the batch that is waited for is ready
  bool behind_ = false;
  // What readers did since they were last looked at: in all, and while the caller waited.
  Clock::time_point seen_;
  StageTimes seen_stages_;
  double seen_waiting_ = 0, seen_processor_ = 0;  // seconds
  bool fetching_ = false;                         // most of their time went into reading files
  bool for_files_ = false;                        // and mostly into waiting for them
  Clock::time_point calm_since_;
  double calm_consumer_ = 0;
  InputReport report_;
  Clock::time_point started_;
};

}  // namespace lockstep

// BatchPieces: the batches of a plan cut into pieces, ranges of rows that different threads fill in place,
// and the buffers of the batches that are being made.
//
// Planning and filling a piece may be done by many threads at once; everything else is for one at a time.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "data/shards/stage_counters.h"
#include "data/source/source.h"

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

// A batch that is being made.
struct OpenBatch {
  std::unique_ptr<Batch> batch;
  int64_t left = 0;  // rows that are not filled yet
  std::exception_ptr error;
  int64_t error_row = 0;

  // Of several faults, that of the first row counts.
  void fail(std::exception_ptr fault, int64_t row);
};

// The records of a piece.
struct PlannedPiece {
  std::vector<int64_t> records, epochs;
  int64_t bytes() const { return static_cast<int64_t>((records.size() + epochs.size()) * sizeof(int64_t)); }
};

class BatchPieces {
 public:
  // `ahead` batches are made at the same time, by `readers` threads.
  BatchPieces(const Source& source, BatchPlan plan, int64_t ahead, int readers);
  ~BatchPieces();
  BatchPieces(const BatchPieces&) = delete;
  BatchPieces& operator=(const BatchPieces&) = delete;

  int64_t batches() const { return plan_.batches; }
  int64_t per_batch() const { return per_batch_; }
  int64_t rows() const { return rows_; }  // of a piece
  int64_t first_row(int64_t piece) const { return piece % per_batch_ * rows_; }

  PlannedPiece plan(int64_t piece, bool epochs) const;
  // Throws what the source throws.
  void fill(int64_t piece, const PlannedPiece& planned, OpenBatch& open) const;

  // The batch, begun if it is not.
  OpenBatch& open(int64_t batch);
  OpenBatch take(int64_t batch);  // it is no longer among them
  // A buffer that is not needed any more, to be used again.
  void give_back(std::unique_ptr<Batch> batch);
  void drop_all();
  // Whether there are several, and all from `first` on are full.
  bool all_full(int64_t first) const;

  // What planning and filling took, over all threads, and the memory that it counts in.
  StageTimes stages() const;
  ByteBudget& memory() const { return *source_counters_.memory(); }

 private:
  int64_t rows_of(int64_t batch) const;

  const Source& source_;
  BatchPlan plan_;
  int64_t ahead_;
  int64_t batch_bytes_;
  int64_t rows_, per_batch_;
  mutable StageCounters own_counters_;  // planning, and all of sources that have none
  const StageCounters& source_counters_;
  std::unordered_map<int64_t, OpenBatch> open_;
  std::vector<std::unique_ptr<Batch>> spare_;
};

}  // namespace lockstep

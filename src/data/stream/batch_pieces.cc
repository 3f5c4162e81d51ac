#include "data/stream/batch_pieces.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

// Large enough that handing a piece out costs nothing, small enough that all readers find one.
constexpr int64_t kPieceBytes = 512 << 10;
// Where few batches may be made ahead, these are cut into so many pieces for each reader: one that finds none
// is idle although time is short. But not into less than so many rows.
constexpr int64_t kPiecesEach = 4, kLeastRows = 256;

int64_t piece_rows(int64_t record_bytes, int64_t rows, int64_t ahead, int readers) {
  const int64_t pieces = std::max<int64_t>(1, kPiecesEach * readers / std::max<int64_t>(1, ahead));
  const int64_t share = std::max((rows + pieces - 1) / pieces, kLeastRows);
  return std::clamp<int64_t>(std::min(kPieceBytes / std::max<int64_t>(1, record_bytes), share), 1,
                             std::max<int64_t>(1, rows));
}

}  // namespace

void OpenBatch::fail(std::exception_ptr fault, int64_t row) {
  if (error && row >= error_row) return;
  error = std::move(fault);
  error_row = row;
}

BatchPieces::BatchPieces(const Source& source, BatchPlan plan, int64_t ahead, int readers)
    : source_(source),
      plan_(std::move(plan)),
      ahead_(ahead),
      batch_bytes_(std::max<int64_t>(1, bytes_of_record(source.columns()) * plan_.rows)),
      rows_(piece_rows(bytes_of_record(source.columns()), plan_.rows, ahead, readers)),
      per_batch_((plan_.rows + rows_ - 1) / rows_),
      source_counters_(source.stages() != nullptr ? *source.stages() : own_counters_) {}

BatchPieces::~BatchPieces() {
  memory().give(static_cast<int64_t>(open_.size() + spare_.size()) * batch_bytes_);
}

PlannedPiece BatchPieces::plan(int64_t piece, bool epochs) const {
  const StageCounters::Timer timer(own_counters_, InputStage::kAssemble);
  PlannedPiece planned;
  const int64_t rows = std::clamp<int64_t>(rows_of(piece / per_batch_) - first_row(piece), 0, rows_);
  planned.records.resize(static_cast<size_t>(rows));
  plan_.records(piece / per_batch_, first_row(piece), planned.records, epochs ? &planned.epochs : nullptr);
  return planned;
}

void BatchPieces::fill(int64_t piece, const PlannedPiece& planned, OpenBatch& open) const {
  if (planned.records.empty()) return;  // the last batch may have fewer rows
  std::optional<StageCounters::Timer> timer;
  if (source_.stages() == nullptr) timer.emplace(own_counters_, InputStage::kAssemble);
  Batch rows = open.batch->rows(first_row(piece), std::ssize(planned.records));
  if (source_.varies())
    source_.fill_in_epochs(planned.records, planned.epochs, rows);
  else
    source_.fill(planned.records, rows);
}

int64_t BatchPieces::rows_of(int64_t batch) const {
  return batch == plan_.batches - 1 && plan_.last > 0 ? plan_.last : plan_.rows;
}

OpenBatch& BatchPieces::open(int64_t batch) {
  OpenBatch& made = open_[batch];
  if (made.batch) return made;
  const int64_t rows = rows_of(batch);
  made.left = rows;
  if (!spare_.empty()) {
    made.batch = std::move(spare_.back());
    spare_.pop_back();
  } else {
    memory().take(batch_bytes_);
  }
  if (!made.batch || made.batch->records() != rows)
    made.batch = std::make_unique<Batch>(source_.columns(), rows);
  return made;
}

OpenBatch BatchPieces::take(int64_t batch) { return std::move(open_.extract(batch).mapped()); }

void BatchPieces::give_back(std::unique_ptr<Batch> batch) {
  if (std::ssize(open_) + std::ssize(spare_) <= ahead_)
    spare_.push_back(std::move(batch));
  else
    memory().give(batch_bytes_);
}

void BatchPieces::drop_all() {
  for (auto& [number, made] : open_) spare_.push_back(std::move(made.batch));
  open_.clear();
}

bool BatchPieces::all_full(int64_t first) const {
  return open_.size() > 1 && std::none_of(open_.begin(), open_.end(), [&](const auto& made) {
           return made.first >= first && made.second.left > 0;
         });
}

StageTimes BatchPieces::stages() const {
  StageTimes times = source_counters_.read();
  if (source_.stages() == nullptr) return times;
  const StageTimes own = own_counters_.read();
  for (size_t i = 0; i < kStageNames.size(); ++i) times.nanoseconds[i] += own.nanoseconds[i];
  return times;
}

}  // namespace lockstep

#include "data/stream/batch_stream.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace lockstep {
namespace {

// One more batch is in the hands of the caller. Of large ones a second is begun while the next waits, where
// that takes no more than some of what blocks have: batches do not all take the same time.
int64_t batches_ahead(const StreamOptions& options, int64_t batch_bytes) {
  const int64_t least = std::min<int64_t>(batch_bytes <= options.budget ? 2 : 1, options.most_ahead);
  return std::clamp<int64_t>(options.budget / std::max<int64_t>(1, batch_bytes) - 1, least,
                             options.most_ahead);
}

}  // namespace

BatchStream::BatchStream(const Source& source, BatchPlan plan, const StreamOptions& options)
    : source_(source),
      options_(options),
      readers_(options.pool != nullptr ? std::min(options.pool->most(), options.processors) : 0),
      ahead_(batches_ahead(options, bytes_of_record(source.columns()) * plan.rows)),
      pieces_(source, std::move(plan), ahead_, options.processors) {}

BatchStream::~BatchStream() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.wait(lock, [&] { return busy_ == 0; });
  forget_planned();
  if (current_) pieces_.give_back(std::move(current_));
}

const Batch& BatchStream::get(int64_t number) {
  LOCKSTEP_CHECK(number >= 0 && number < pieces_.batches(), "batch {} of {}", number, pieces_.batches());
  std::unique_lock lock(mutex_);
  waits_.asked();
  if (current_) pieces_.give_back(std::move(current_));
  if (number != next_) seek(number, lock);
  next_ = number + 1;
  OpenBatch& wanted = pieces_.open(number);
  if (wanted.left > 0) {
    const StageTimes before = pieces_.stages();
    finish(wanted, lock);
    waits_.waited(before, pieces_.stages());
  }
  OpenBatch done = pieces_.take(number);
  current_ = std::move(done.batch);
  call_readers();
  waits_.handed_over();
  if (done.error) std::rethrow_exception(done.error);
  return *current_;
}

// The caller makes pieces of its batch as long as there are any, and waits for those that others make.
void BatchStream::finish(OpenBatch& open, std::unique_lock<std::mutex>& lock) {
  caller_waits_ = true;
  call_readers();
  while (open.left > 0) {
    // Once the rest of this batch is in the hands of others, it is soon done. To a caller that does little
    // but wait, sleeping meanwhile takes longer than a piece of the next one does. Any other would only take
    // the processor from the reader that it waits for.
    const int64_t end = waits_.caller_only_waits() ? end_of_ahead() : next_ * pieces_.per_batch();
    if (claimed_ < end && can_make()) {
      make_next(lock);
    } else {
      note_if_behind();
      changed_.wait(lock);
    }
  }
  caller_waits_ = false;
}

void BatchStream::read_ahead() {
  std::unique_lock lock(mutex_);
  const auto has_work = [&] { return claimed_ < end_of_ahead() && can_make(); };
  while (!stopping_) {
    if (has_work())
      make_next(lock);
    else if (!look_ahead(lock) && !has_work())  // a batch may have been taken meanwhile
      break;
  }
  --busy_;
  if (busy_ == 0 && claimed_ >= end_of_ahead()) waits_.readers_rest();
  if (stopping_ || caller_waits_) changed_.notify_all();
}

void BatchStream::make_next(std::unique_lock<std::mutex>& lock) {
  const int64_t piece = claimed_++;
  PlannedPiece planned;
  if (!planned_.empty()) {
    planned = std::move(planned_.front());
    planned_.pop_front();
  }
  const int64_t held = planned.bytes();
  OpenBatch& target = pieces_.open(piece / pieces_.per_batch());
  lock.unlock();
  std::exception_ptr error;
  if (planned.records.empty()) planned = pieces_.plan(piece, source_.varies());
  try {
    pieces_.fill(piece, planned, target);
  } catch (...) {
    error = std::current_exception();
  }
  pieces_.memory().give(held);
  lock.lock();
  target.left -= std::ssize(planned.records);
  if (error) target.fail(error, pieces_.first_row(piece));
  if (!caller_waits_) return;
  note_if_behind();
  if (target.left == 0) changed_.notify_all();
}

void BatchStream::plan_next(std::unique_lock<std::mutex>& lock) {
  planning_ = true;
  const int64_t piece = claimed_ + std::ssize(planned_);
  lock.unlock();
  PlannedPiece planned = pieces_.plan(piece, true);
  source_.expect(planned.records, planned.epochs);
  if (!source_.varies()) planned.epochs = {};
  pieces_.memory().take(planned.bytes());
  lock.lock();
  planning_ = false;
  planned_.push_back(std::move(planned));
  planned_more_.notify_all();
  if (caller_waits_) changed_.notify_all();
}

// All batches that may be made are made or being made. Where the caller does little but wait for them, what
// is loaded ahead only leaves the processor's cache before it is used. Loading is what takes time, so it
// comes before planning.
bool BatchStream::look_ahead(std::unique_lock<std::mutex>& lock) {
  if (caller_waits_ || waits_.caller_only_waits()) return false;
  lock.unlock();
  const bool loaded = source_.load_ahead();
  lock.lock();
  if (loaded) return true;
  if (planning_) {  // what another reader plans, both load
    planned_more_.wait(lock, [&] { return !planning_; });
    return true;
  }
  const int64_t planned = std::ssize(planned_);
  if (stopping_ || claimed_ + planned >= pieces_.batches() * pieces_.per_batch()) return false;
  if ((planned + 1) * pieces_.rows() > source_.loads_ahead()) return false;
  plan_next(lock);
  return true;
}

void BatchStream::forget_planned() {
  int64_t held = 0;
  for (const PlannedPiece& planned : planned_) held += planned.bytes();
  pieces_.memory().give(held);
  planned_.clear();
  source_.expect_nothing();
}

void BatchStream::seek(int64_t batch, std::unique_lock<std::mutex>& lock) {
  stopping_ = true;
  changed_.wait(lock, [&] { return busy_ == 0; });
  stopping_ = false;
  pieces_.drop_all();
  forget_planned();
  claimed_ = batch * pieces_.per_batch();
}

int64_t BatchStream::end_of_ahead() const {
  return std::min(next_ + ahead_, pieces_.batches()) * pieces_.per_batch();
}

// While the next piece is planned, it is left to whoever plans it.
bool BatchStream::can_make() const { return !planning_ || !planned_.empty(); }

void BatchStream::note_if_behind() {
  if (claimed_ >= end_of_ahead() && pieces_.all_full(next_)) waits_.only_this_is_missing();
}

void BatchStream::call_readers() {
  if (readers_ == 0 || stopping_) return;
  const int64_t free = end_of_ahead() - claimed_;
  // Waking a reader costs as much as a small batch, so it is done for several of them.
  if (free <= 0 || (!caller_waits_ && 2 * free < ahead_ * pieces_.per_batch() && busy_ == 0)) return;
  waits_.readers_work();
  const int64_t wanted = std::min<int64_t>(readers_, busy_ + free);
  for (; busy_ < wanted; ++busy_) options_.pool->submit([this] { read_ahead(); });
  most_busy_ = std::max(most_busy_, busy_);
}

InputReport BatchStream::report() const {
  const std::lock_guard lock(mutex_);
  InputReport report = waits_.report();
  report.readers = most_busy_;
  report.ahead = ahead_;
  report.stages = pieces_.stages();
  report.peak_bytes = pieces_.memory().peak();
  report.could_keep_rows = source_.could_keep_rows();
  report.budget = source_.stages() != nullptr ? pieces_.memory().limit() : options_.budget;
  return report;
}

}  // namespace lockstep

#include "data/pipeline/batch_stream.h"

#include <algorithm>
#include <ctime>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"

namespace lockstep {
namespace {

// Large enough that handing a piece out costs nothing, small enough that all readers find one.
constexpr int64_t kPieceBytes = 512 << 10;
// Where few batches may be made ahead, these are cut into so many pieces for each processor: a reader that
// finds none is idle although time is short. But not into less than so many rows.
constexpr int64_t kPiecesEach = 4, kLeastPiece = 256;
constexpr int64_t kMostFetchAhead = 64 << 20;
// The source is told of so many times the rows that were read so far, until it has been told enough: the
// first batches do not wait for plans.
constexpr int64_t kPlanGrowth = 32;
constexpr double kGlance = 5e-3;  // seconds between two looks at what readers do
constexpr double kBusy = 0.5;     // of a processor's time
constexpr double kFading = 0.9;   // of what lately took time, from batch to batch
// Readers that had no rest for so many batches may not find the time to look ahead.
constexpr int64_t kWithoutRest = 8;

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// Puts a wait down to the stages, in proportion to the work that was finished in it.
void attribute(double seconds, const StageTimes& before, const StageTimes& after, InputReport& report) {
  int64_t all = 0;
  for (size_t i = 0; i < kStageNames.size(); ++i) all += after.nanoseconds[i] - before.nanoseconds[i];
  if (all == 0) {
    report.waited[static_cast<size_t>(InputStage::kAssemble)] += seconds;
    return;
  }
  for (size_t i = 0; i < kStageNames.size(); ++i)
    report.waited[i] += seconds * static_cast<double>(after.nanoseconds[i] - before.nanoseconds[i]) /
                        static_cast<double>(all);
}

// Of the work between two times.
double share_of_fetching(const StageTimes& before, const StageTimes& after) {
  const auto all_of = [](const StageTimes& times) {
    return std::accumulate(times.nanoseconds.begin(), times.nanoseconds.end(), int64_t{0});
  };
  const auto fetching_of = [](const StageTimes& times) {
    return times.nanoseconds[static_cast<size_t>(InputStage::kFetch)];
  };
  const int64_t all = all_of(after) - all_of(before);
  return all > 0 ? static_cast<double>(fetching_of(after) - fetching_of(before)) / static_cast<double>(all)
                 : 0;
}

double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

KnobLimits limits_of(const StreamOptions& options, int64_t batch_bytes) {
  const int most = options.pool != nullptr ? options.pool->most() : 0;
  // One more batch is in the hands of the caller.
  // Of large ones a second is begun while the next waits, where that takes no more than some of what blocks
  // have: batches do not all take the same time.
  const int64_t least = batch_bytes <= options.budget ? 2 : 1;
  const int64_t ahead = std::clamp<int64_t>(options.budget / batch_bytes - 1,
                                            std::min<int64_t>(least, options.most_ahead), options.most_ahead);
  return {.readers = options.processors, .waiting_readers = most, .ahead = ahead, .fetch = kMostFetchAhead};
}

int64_t piece_rows_of(const StreamOptions& options, int64_t record_bytes, int64_t rows) {
  const int64_t ahead = limits_of(options, std::max<int64_t>(1, record_bytes * rows)).ahead;
  const int64_t pieces = std::max<int64_t>(1, kPiecesEach * options.processors / std::max<int64_t>(1, ahead));
  const int64_t share = std::max((rows + pieces - 1) / pieces, kLeastPiece);
  return std::clamp<int64_t>(std::min(kPieceBytes / std::max<int64_t>(1, record_bytes), share), 1,
                             std::max<int64_t>(1, rows));
}

}  // namespace

BatchStream::BatchStream(const Source& source, BatchPlan plan, const StreamOptions& options)
    : source_(source),
      plan_(std::move(plan)),
      options_(options),
      batch_bytes_(std::max<int64_t>(1, bytes_of_record(source.columns()) * plan_.rows)),
      piece_rows_(piece_rows_of(options, bytes_of_record(source.columns()), plan_.rows)),
      pieces_((plan_.rows + piece_rows_ - 1) / piece_rows_),
      source_counters_(source.stages() != nullptr ? *source.stages() : own_counters_),
      knobs_(limits_of(options, batch_bytes_)) {}

BatchStream::~BatchStream() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.wait(lock, [&] { return busy_ == 0; });
  forget_planned();
  const auto held = static_cast<int64_t>(open_.size() + spare_.size()) + (current_ ? 1 : 0);
  source_counters_.memory()->give(held * batch_bytes_);
}

const Batch& BatchStream::get(int64_t number) {
  LOCKSTEP_CHECK(number >= 0 && number < plan_.batches, "batch {} of {}", number, plan_.batches);
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  if (report_.batches++ == 0) started_ = calm_since_ = seen_ = start;
  with_batches_ = kFading * with_batches_ + (current_ ? seconds_between(handed_over_, start) : 0);
  for_batches_ *= kFading;
  if (current_) close(std::move(current_));
  const bool follows = number == next_ && number > 0;
  if (number != next_) seek(number, lock);
  next_ = number + 1;
  Open& wanted = open(number);
  if (wanted.left > 0) {
    const StageTimes before = stages();
    const double processor = fetching_ ? processor_time() : 0;
    finish(wanted, lock);
    const Clock::time_point end = Clock::now();
    look_at_readers(seconds_between(start, end), fetching_ ? processor_time() - processor : 0);
    for_batches_ += seconds_between(start, end);
    const double behind = behind_ ? seconds_between(behind_since_, end) : 0;
    report_.waited[kReorderWait] += behind;
    attribute(seconds_between(start, end) - behind, before, stages(), report_);
    without_rest_ = 0;
    if (follows)
      knobs_.waited(
          {.busy = busy_ >= knobs_.readers(), .full = std::exchange(was_full_, false), .files = for_files_});
  } else {
    note_calm();
    if (busy_ < knobs_.readers()) without_rest_ = 0;
    if (++without_rest_ == kWithoutRest) {
      without_rest_ = 0;
      knobs_.had_no_rest();
    }
  }
  report_.ahead = std::max(report_.ahead, knobs_.ahead());
  report_.readers = std::max<int64_t>(report_.readers, knobs_.readers());
  Open done = std::move(open_.extract(number).mapped());
  current_ = std::move(done.batch);
  call_readers();
  handed_over_ = Clock::now();
  if (done.error) std::rethrow_exception(done.error);
  return *current_;
}

// The caller makes pieces of its batch as long as there are any, and waits for those that others make: at
// work on what comes next, where there is any.
void BatchStream::finish(Open& open, std::unique_lock<std::mutex>& lock) {
  waits_ = true;
  behind_ = false;
  call_readers();
  while (open.left > 0) {
    // Once the rest of this batch is in the hands of others, it is soon done, unless it waits for files. To a
    // caller that does little but wait, sleeping meanwhile takes longer than a piece of the next one does.
    // Any other would only take the processor from the reader that it waits for.
    const bool helps = !for_files_ && with_batches_ < for_batches_;
    const int64_t end = helps ? end_of_ahead() : next_ * pieces_;
    if (claimed_ < end && can_make()) {
      make_next(lock);
    } else {
      note_behind();
      changed_.wait(lock);
    }
  }
  waits_ = false;
}

void BatchStream::read_ahead() {
  std::unique_lock lock(mutex_);
  const auto has_work = [&] { return claimed_ < end_of_ahead() && can_make(); };
  while (!stopping_) {
    if (should_plan())
      plan_next(lock);
    else if (has_work())
      make_next(lock);
    else if (!look_ahead(lock) && !has_work())  // a batch may have been taken meanwhile
      break;
  }
  --busy_;
  if (busy_ == 0 && !full_ && claimed_ >= end_of_ahead()) {
    full_ = was_full_ = true;
    full_since_ = Clock::now();
  }
  if (stopping_ || waits_) changed_.notify_all();
}

void BatchStream::make_next(std::unique_lock<std::mutex>& lock) {
  const int64_t piece = claimed_++;
  Planned planned;
  if (!planned_.empty()) {
    planned = std::move(planned_.front());
    planned_.pop_front();
  }
  const int64_t held = planned.bytes();
  Open& target = open(piece / pieces_);
  lock.unlock();
  std::exception_ptr error;
  if (planned.records.empty()) plan_piece(piece, source_.varies(), planned);
  try {
    fill_piece(piece, target, planned);
  } catch (...) {
    error = std::current_exception();
  }
  source_counters_.memory()->give(held);
  lock.lock();
  target.left -= static_cast<int64_t>(planned.records.size());
  const int64_t row = piece % pieces_ * piece_rows_;
  if (error && (!target.error || row < target.error_row)) {
    target.error = error;
    target.error_row = row;
  }
  if (waits_) {
    note_behind();
    if (target.left == 0) changed_.notify_all();
  }
}

void BatchStream::plan_next(std::unique_lock<std::mutex>& lock) {
  planning_ = true;
  const int64_t piece = claimed_ + static_cast<int64_t>(planned_.size());
  const bool hint = knobs_.fetch() > 0;
  lock.unlock();
  Planned planned;
  plan_piece(piece, source_.varies() || source_.looks_ahead() == 0, planned);
  source_.expect(planned.records, planned.epochs, hint);
  if (!source_.varies()) planned.epochs = {};
  source_counters_.memory()->take(planned.bytes());
  lock.lock();
  planning_ = false;
  planned_.push_back(std::move(planned));
  planned_more_.notify_all();
  if (waits_) changed_.notify_all();
}

// All batches that may be made are made or being made. Where the caller does little but wait for them, what
// is loaded ahead only leaves the processor's cache before it is used. Loading is what takes time, so it
// comes before planning.
bool BatchStream::look_ahead(std::unique_lock<std::mutex>& lock) {
  if (waits_ || with_batches_ < for_batches_) return false;
  was_full_ = true;
  lock.unlock();
  const bool loaded = source_.load_ahead();
  lock.lock();
  if (loaded) return true;
  if (planning_) {  // what another reader plans, both load
    planned_more_.wait(lock, [&] { return !planning_; });
    return true;
  }
  const auto planned = static_cast<int64_t>(planned_.size());
  if (stopping_ || claimed_ + planned >= plan_.batches * pieces_) return false;
  if ((planned + 1) * piece_rows_ > source_.loads_ahead()) return false;
  plan_next(lock);
  return true;
}

void BatchStream::forget_planned() {
  int64_t held = 0;
  for (const Planned& planned : planned_) held += planned.bytes();
  source_counters_.memory()->give(held);
  planned_.clear();
  source_.expect_nothing();
}

void BatchStream::plan_piece(int64_t piece, bool epochs, Planned& planned) const {
  const StageCounters::Timer timer(own_counters_, InputStage::kAssemble);
  const int64_t first = piece % pieces_ * piece_rows_;
  const int64_t rows = std::clamp<int64_t>(rows_of(piece / pieces_) - first, 0, piece_rows_);
  planned.records.resize(static_cast<size_t>(rows));
  plan_.records(piece / pieces_, first, planned.records, epochs ? &planned.epochs : nullptr);
}

void BatchStream::fill_piece(int64_t piece, Open& open, Planned& planned) const {
  if (planned.records.empty()) return;  // the last batch may have fewer rows
  std::optional<StageCounters::Timer> timer;
  if (source_.stages() == nullptr) timer.emplace(own_counters_, InputStage::kAssemble);
  Batch rows = open.batch->rows(piece % pieces_ * piece_rows_, static_cast<int64_t>(planned.records.size()));
  if (source_.varies())
    source_.fill_in_epochs(planned.records, planned.epochs, rows);
  else
    source_.fill(planned.records, rows);
}

int64_t BatchStream::rows_of(int64_t batch) const {
  return batch == plan_.batches - 1 && plan_.last > 0 ? plan_.last : plan_.rows;
}

BatchStream::Open& BatchStream::open(int64_t batch) {
  Open& made = open_[batch];
  if (made.batch) return made;
  const int64_t rows = rows_of(batch);
  made.left = rows;
  if (!spare_.empty()) {
    made.batch = std::move(spare_.back());
    spare_.pop_back();
  } else {
    source_counters_.memory()->take(batch_bytes_);
  }
  if (!made.batch || made.batch->records() != rows)
    made.batch = std::make_unique<Batch>(source_.columns(), rows);
  return made;
}

void BatchStream::close(std::unique_ptr<Batch> batch) {
  if (static_cast<int64_t>(open_.size() + spare_.size()) <= knobs_.ahead())
    spare_.push_back(std::move(batch));
  else
    source_counters_.memory()->give(batch_bytes_);
}

void BatchStream::seek(int64_t batch, std::unique_lock<std::mutex>& lock) {
  stopping_ = true;
  changed_.wait(lock, [&] { return busy_ == 0; });
  stopping_ = false;
  for (auto& [number, made] : open_) spare_.push_back(std::move(made.batch));
  open_.clear();
  forget_planned();
  claimed_ = begun_ = batch * pieces_;
}

int64_t BatchStream::end_of_ahead() const {
  return std::min(next_ + knobs_.ahead(), plan_.batches) * pieces_;
}

// While the next piece is planned, it is left to whoever plans it.
bool BatchStream::can_make() const { return !planning_ || !planned_.empty(); }

bool BatchStream::should_plan() const {
  if (planning_) return false;
  const auto planned = static_cast<int64_t>(planned_.size());
  if (claimed_ + planned >= plan_.batches * pieces_) return false;
  int64_t rows = source_.looks_ahead();
  if (knobs_.fetch() > 0) {
    const StageTimes times = stages();
    rows = std::max(rows,
                    knobs_.fetch() / std::max<int64_t>(1, times.bytes / std::max<int64_t>(1, times.decoded)));
  }
  return planned < std::min(rows / piece_rows_, kPlanGrowth * (claimed_ - begun_));
}

void BatchStream::call_readers() {
  if (options_.pool == nullptr || stopping_) return;
  const int64_t free = end_of_ahead() - claimed_;
  // Waking a reader costs as much as a small batch, so it is done for several of them.
  if (free <= 0 || (!waits_ && 2 * free < knobs_.ahead() * pieces_ && busy_ == 0)) return;
  if (full_) report_.consumer += seconds_between(full_since_, Clock::now());
  full_ = false;
  const int64_t wanted = std::min<int64_t>(knobs_.readers(), busy_ + free);
  for (; busy_ < wanted; ++busy_) options_.pool->submit([this] { read_ahead(); });
}

// Reading what the system has in memory is fetching too, but takes a processor; waiting for a disk does not.
void BatchStream::look_at_readers(double seconds, double processor) {
  seen_waiting_ += seconds;
  seen_processor_ += processor;
  const Clock::time_point now = Clock::now();
  if (seconds_between(seen_, now) < kGlance) return;
  const StageTimes times = stages();
  const int at_work = std::min(std::max(1, knobs_.readers()), options_.processors);
  for_files_ = fetching_ && seen_processor_ < kBusy * seen_waiting_ * at_work;
  fetching_ = share_of_fetching(seen_stages_, times) > 0.5;
  seen_ = now;
  seen_stages_ = times;
  seen_waiting_ = seen_processor_ = 0;
}

// Notes when everything is ready but what the caller waits for.
void BatchStream::note_behind() {
  if (behind_ || claimed_ < end_of_ahead() || open_.size() < 2) return;
  for (const auto& [number, made] : open_)
    if (number >= next_ && made.left > 0) return;
  behind_ = true;
  behind_since_ = Clock::now();
}

void BatchStream::note_calm() {
  const Clock::time_point now = Clock::now();
  const double consumer = report_.consumer + (full_ ? seconds_between(full_since_, now) : 0);
  const double elapsed = seconds_between(calm_since_, now);
  if (!knobs_.did_not_wait(elapsed > 0 ? (consumer - calm_consumer_) / elapsed : 0)) return;
  calm_since_ = now;
  calm_consumer_ = consumer;
}

StageTimes BatchStream::stages() const {
  StageTimes times = source_counters_.read();
  if (source_.stages() == nullptr) return times;
  const StageTimes own = own_counters_.read();
  for (size_t i = 0; i < kStageNames.size(); ++i) times.nanoseconds[i] += own.nanoseconds[i];
  return times;
}

InputReport BatchStream::report() const {
  const std::lock_guard lock(mutex_);
  InputReport report = report_;
  if (report.batches > 0) report.seconds = seconds_between(started_, Clock::now());
  report.stages = stages();
  report.peak_bytes = source_counters_.memory()->peak();
  report.decodes_again = source_.looks_ahead() > 0;
  report.could_keep_rows = source_.could_keep_rows();
  report.budget = source_.stages() != nullptr ? source_counters_.memory()->limit() : options_.budget;
  return report;
}

}  // namespace lockstep

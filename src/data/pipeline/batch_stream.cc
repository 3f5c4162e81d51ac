#include "data/pipeline/batch_stream.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr int64_t kFirstAhead = 4;

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

int64_t bytes_of(const std::vector<Column>& columns, int64_t records) {
  int64_t bytes = 0;
  for (const Column& column : columns) bytes += column.shape.numel() * size_of(column.dtype);
  return bytes * records;
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

}  // namespace

BatchStream::BatchStream(const Source& source, BatchPlan plan, const StreamOptions& options)
    : source_(source),
      plan_(std::move(plan)),
      options_(options),
      stages_(source.stages() != nullptr ? *source.stages() : own_counters_) {
  std::vector<int64_t> first;
  if (plan_.batches > 0) plan_.records(0, first, nullptr);
  const int64_t bytes = std::max<int64_t>(1, bytes_of(source.columns(), static_cast<int64_t>(first.size())));
  // One more is in the hands of the caller.
  most_ahead_ = std::clamp<int64_t>(options.budget / bytes - 1, 1, options.most_ahead);
  ahead_ = std::min(kFirstAhead, most_ahead_);
  readers_ = options.pool != nullptr ? 1 : 0;
  report_.readers = readers_;
  report_.ahead = ahead_;
}

BatchStream::~BatchStream() {
  std::unique_lock lock(mutex_);
  closing_ = true;
  changed_.wait(lock, [&] { return busy_ == 0; });
}

const Batch& BatchStream::get(int64_t number) {
  LOCKSTEP_CHECK(number >= 0 && number < plan_.batches, "batch {} of {}", number, plan_.batches);
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex_);
  if (report_.batches++ == 0) started_ = start;
  if (current_) spare_.push_back(std::move(current_));
  const bool follows = number == next_ && number > 0;
  if (number != next_) seek(number);
  next_ = number + 1;
  Made made;
  if (claimed_ == number) {
    ++claimed_;
    call_readers();
    auto reused = reused_batch();
    lock.unlock();
    const StageTimes before = stages_.read();
    made = make(number, std::move(reused));
    lock.lock();
    attribute(seconds_between(start, Clock::now()), before, stages_.read(), report_);
    if (follows) take_more();
  } else {
    if (ready_.count(number) == 0) {
      wait_for(number, lock);
      if (follows) take_more();
    }
    made = std::move(ready_.extract(number).mapped());
  }
  call_readers();
  current_ = std::move(made.batch);
  if (made.error) std::rethrow_exception(made.error);
  return *current_;
}

void BatchStream::seek(int64_t number) {
  for (auto& [ready, made] : ready_)
    if (made.batch) spare_.push_back(std::move(made.batch));
  ready_.clear();
  ++turn_;
  claimed_ = number;
}

void BatchStream::wait_for(int64_t number, std::unique_lock<std::mutex>& lock) {
  const Clock::time_point start = Clock::now();
  const StageTimes before = stages_.read();
  waits_ = true;
  behind_ = false;
  call_readers();
  note_full();
  changed_.wait(lock, [&] { return ready_.count(number) != 0; });
  waits_ = false;
  const Clock::time_point end = Clock::now();
  double seconds = seconds_between(start, end);
  if (behind_) {
    const double behind = seconds_between(behind_since_, end);
    report_.waited[kReorderWait] += behind;
    seconds -= behind;
  }
  attribute(seconds, before, stages_.read(), report_);
}

// More readers help where there is work for them, and reading further ahead where that is uneven.
void BatchStream::take_more() {
  if (options_.pool == nullptr) return;
  ahead_ = std::min(2 * ahead_, most_ahead_);
  const StageTimes times = stages_.read();
  const int64_t fetching = times.nanoseconds[static_cast<size_t>(InputStage::kFetch)];
  const int64_t all = std::accumulate(times.nanoseconds.begin(), times.nanoseconds.end(), int64_t{0});
  const int most =
      2 * fetching > all ? options_.pool->most() : std::min(options_.processors, options_.pool->most());
  if (busy_ == readers_) readers_ = std::max(readers_, std::min(readers_ + 1, most));
  report_.ahead = std::max(report_.ahead, ahead_);
  report_.readers = std::max<int64_t>(report_.readers, readers_);
}

int64_t BatchStream::end_of_ahead() const { return std::min(next_ + ahead_, plan_.batches); }

void BatchStream::call_readers() {
  if (options_.pool == nullptr || closing_) return;
  const int64_t free = end_of_ahead() - claimed_;
  // Waking a reader costs as much as a small batch, so it is done for several of them.
  if (free <= 0 || (!waits_ && 2 * free < ahead_ && busy_ == 0)) return;
  if (full_) report_.consumer += seconds_between(full_since_, Clock::now());
  full_ = false;
  for (int64_t i = busy_; i < std::min<int64_t>(readers_, busy_ + free); ++i) {
    ++busy_;
    options_.pool->submit([this] { read_ahead(); });
  }
}

void BatchStream::read_ahead() {
  std::unique_lock lock(mutex_);
  while (!closing_ && claimed_ < end_of_ahead()) {
    const int64_t number = claimed_++;
    const int64_t turn = turn_;
    auto reused = reused_batch();
    lock.unlock();
    Made made = make(number, std::move(reused));
    lock.lock();
    if (turn == turn_) {
      ready_.emplace(number, std::move(made));
      if (waits_) changed_.notify_all();
    } else if (made.batch) {
      spare_.push_back(std::move(made.batch));
    }
    note_full();
  }
  --busy_;
  if (busy_ == 0 && !full_ && claimed_ >= end_of_ahead()) {
    full_ = true;
    full_since_ = Clock::now();
  }
  if (closing_) changed_.notify_all();
}

// Notes when everything is ready but what the caller waits for.
void BatchStream::note_full() {
  if (!waits_ || behind_ || claimed_ < end_of_ahead()) return;
  if (static_cast<int64_t>(ready_.size()) < claimed_ - next_ || claimed_ == next_) return;
  behind_ = true;
  behind_since_ = Clock::now();
}

std::unique_ptr<Batch> BatchStream::reused_batch() {
  if (spare_.empty()) return nullptr;
  auto batch = std::move(spare_.back());
  spare_.pop_back();
  return batch;
}

BatchStream::Made BatchStream::make(int64_t number, std::unique_ptr<Batch> reused) {
  Made made{std::move(reused), nullptr};
  try {
    thread_local std::vector<int64_t> records, epochs;
    plan_.records(number, records, source_.varies() ? &epochs : nullptr);
    const auto count = static_cast<int64_t>(records.size());
    if (!made.batch || made.batch->records() != count)
      made.batch = std::make_unique<Batch>(source_.columns(), count);
    std::optional<StageCounters::Timer> timer;
    if (source_.stages() == nullptr) timer.emplace(own_counters_, InputStage::kAssemble);
    if (source_.varies())
      source_.fill_in_epochs(records, epochs, *made.batch);
    else
      source_.fill(records, *made.batch);
  } catch (...) {
    made.error = std::current_exception();
  }
  return made;
}

InputReport BatchStream::report() const {
  const std::lock_guard lock(mutex_);
  InputReport report = report_;
  if (report.batches > 0) report.seconds = seconds_between(started_, Clock::now());
  report.stages = stages_.read();
  int64_t bytes = 0;
  if (current_)
    for (size_t i = 0; i < current_->columns().size(); ++i) bytes += current_->bytes(i);
  report.peak_bytes = bytes * (report.ahead + 1);
  return report;
}

}  // namespace lockstep

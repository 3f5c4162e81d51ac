#include "train/checkpoint/background_writer.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace lockstep {

BackgroundCheckpointWriter::BackgroundCheckpointWriter(std::string run_dir, int64_t keep)
    : writer_(std::move(run_dir), keep), thread_([this] { run(); }) {}

BackgroundCheckpointWriter::~BackgroundCheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  try {
    if (error_) std::rethrow_exception(error_);
  } catch (const std::exception& error) {
    log_error("{}", error.what());
  }
}

void BackgroundCheckpointWriter::save(CheckpointContent content, std::shared_ptr<const void> until_read) {
  {
    std::unique_lock lock(mutex_);
    wait_until_idle(lock);
    content_ = std::move(content);
    until_read_ = std::move(until_read);
    read_ = false;
    busy_ = true;
  }
  changed_.notify_all();
}

bool BackgroundCheckpointWriter::read_within(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return read_; });
}

void BackgroundCheckpointWriter::finish() {
  std::unique_lock lock(mutex_);
  wait_until_idle(lock);
}

bool BackgroundCheckpointWriter::idle_within(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return !busy_; });
}

std::optional<CheckpointInfo> BackgroundCheckpointWriter::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

CheckpointWriter& BackgroundCheckpointWriter::idle_writer() {
  finish();
  return writer_;
}

void BackgroundCheckpointWriter::wait_until_idle(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return !busy_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void BackgroundCheckpointWriter::let_go() {
  std::shared_ptr<const void> held;  // whose end may wake others, who need not find the lock taken
  {
    const std::lock_guard lock(mutex_);
    held = std::move(until_read_);
    read_ = true;
  }
  changed_.notify_all();
}

void BackgroundCheckpointWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return busy_ || stop_; });
    if (!busy_) return;
    lock.unlock();
    std::optional<CheckpointInfo> written;
    std::exception_ptr error;
    try {
      written = writer_.write(content_, [this] { let_go(); });
    } catch (const std::exception&) {
      error = std::current_exception();
      let_go();
    }
    lock.lock();
    if (written) last_ = written;
    error_ = error;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace lockstep

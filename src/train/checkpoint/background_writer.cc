#include "train/checkpoint/background_writer.h"

#include <cstring>

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
  if (!error_.empty()) log_error("{}", error_);
}

void BackgroundCheckpointWriter::save(const CheckpointContent& content) {
  {
    std::unique_lock lock(mutex_);
    wait_until_idle(lock);
  }
  take_snapshot(content);
  {
    const std::lock_guard lock(mutex_);
    busy_ = true;
  }
  changed_.notify_all();
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
  if (!error_.empty()) throw UserError("{}", std::exchange(error_, {}));
}

void BackgroundCheckpointWriter::take_snapshot(const CheckpointContent& content) {
  size_t needed = 0;
  for (const TensorFile& file : content.tensors)
    for (const TensorSpec& tensor : file.tensors) needed += static_cast<size_t>(tensor.bytes());
  if (needed > capacity_) {
    memory_.reset();
    memory_ = std::make_unique_for_overwrite<std::byte[]>(needed);
    capacity_ = needed;
  }
  snapshot_ = {content.step,  content.identity, content.state,    {},
               content.texts, content.best,     content.also_keep};
  std::byte* next = memory_.get();
  for (const TensorFile& file : content.tensors) {
    std::vector<NamedTensor> copies;
    for (const TensorSpec& tensor : file.tensors) {
      std::span<std::byte> into(next, static_cast<size_t>(tensor.bytes()));
      copies.push_back({tensor.name, tensor.dtype, tensor.shape, into});
      next += into.size();
      file.feed(tensor, [&](std::span<const std::byte> piece) {
        LOCKSTEP_CHECK(piece.size() <= into.size(), "too many bytes for tensor {}", tensor.name);
        if (!piece.empty()) std::memcpy(into.data(), piece.data(), piece.size());
        into = into.subspan(piece.size());
      });
      LOCKSTEP_CHECK(into.empty(), "tensor {} lacks {} bytes", tensor.name, into.size());
    }
    snapshot_.tensors.push_back(tensor_file(file.name, copies));
    snapshot_.tensors.back().metadata = file.metadata;
  }
}

void BackgroundCheckpointWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return busy_ || stop_; });
    if (!busy_) return;
    lock.unlock();
    std::optional<CheckpointInfo> written;
    std::string error;
    try {
      written = writer_.write(snapshot_);
    } catch (const std::exception& failure) {
      error = failure.what();
    }
    lock.lock();
    if (written) last_ = written;
    error_ = error;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace lockstep

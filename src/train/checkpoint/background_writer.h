// Writes checkpoints while training goes on. save() copies the tensors into one snapshot in host memory and
// returns; a thread writes from there. There is one snapshot, of the size of one checkpoint: a save that
// comes before the last one is on the disk waits for it. An error of the thread is thrown by the next call,
// once; the run may go on after it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "train/checkpoint/checkpoint_writer.h"

namespace lockstep {

class BackgroundCheckpointWriter {
 public:
  BackgroundCheckpointWriter(std::string run_dir, int64_t keep);
  // Waits for the write under way; an error that nobody asked for is logged.
  ~BackgroundCheckpointWriter();
  BackgroundCheckpointWriter(const BackgroundCheckpointWriter&) = delete;
  BackgroundCheckpointWriter& operator=(const BackgroundCheckpointWriter&) = delete;

  // The tensors are free to change when it returns. The feeds run on the calling thread.
  void save(const CheckpointContent& content);
  // Waits until all that was saved is on the disk.
  void finish();
  // Waits at most so long; whether all is on the disk, or an error awaits the next call.
  bool idle_within(std::chrono::milliseconds time);
  // The newest checkpoint that this object has brought to the disk.
  std::optional<CheckpointInfo> last() const;
  // Waits, then gives the writer itself, for what must not happen during a write.
  CheckpointWriter& idle_writer();

 private:
  void run();
  void take_snapshot(const CheckpointContent& content);
  void wait_until_idle(std::unique_lock<std::mutex>& lock);

  CheckpointWriter writer_;
  std::unique_ptr<std::byte[]> memory_;
  size_t capacity_ = 0;
  CheckpointContent snapshot_;  // with feeds that read from memory_; the thread's while busy_

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  bool stop_ = false;
  std::string error_;
  std::optional<CheckpointInfo> last_;
  std::thread thread_;  // last, so that all it uses exists before it
};

}  // namespace lockstep

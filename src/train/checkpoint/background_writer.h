// Writes checkpoints while training goes on. save() hands the content to a thread and returns; the thread
// asks the feeds for the tensors, piece by piece, and writes them, so that no copy of them is made. Until it
// has read them all they must stay as they are: it keeps what the caller gave it to hold until then. A save
// that comes before the last one is on the disk waits for it. An error of the thread is thrown by the next
// call, once; the run may go on after it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
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

  // The feeds run on the thread. `until_read` is let go when all of them are through, or one has failed.
  void save(CheckpointContent content, std::shared_ptr<const void> until_read);
  // Waits at most so long; whether the tensors of the last save have been read.
  bool read_within(std::chrono::milliseconds time);
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
  void let_go();
  void wait_until_idle(std::unique_lock<std::mutex>& lock);

  CheckpointWriter writer_;
  CheckpointContent content_;  // the thread's while busy_

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  bool stop_ = false;
  std::shared_ptr<const void> until_read_;
  bool read_ = true;
  std::exception_ptr error_;
  std::optional<CheckpointInfo> last_;
  std::thread thread_;  // last, so that all it uses exists before it
};

}  // namespace lockstep

// OrderedOutput: pieces that several threads make in any order, written in the order of their numbers. Those
// that come early wait in memory, up to a number of them; then who made them waits.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace lockstep {

class OrderedOutput {
 public:
  using Write = std::function<void(std::string_view bytes)>;

  // `write` is called by one thread at a time.
  OrderedOutput(Write write, int64_t most_waiting) : write_(std::move(write)), most_waiting_(most_waiting) {}

  // Throws what `write` throws. Once it was stopped, nothing is written.
  void put(int64_t number, std::string bytes);
  // Waits until all pieces before this one are written, then writes what `make` gives.
  void make_in_turn(int64_t number, const std::function<void(std::string& bytes)>& make);
  // Nobody waits any more: some piece will never come.
  void stop();

 private:
  void write_ready(std::unique_lock<std::mutex>& lock);

  Write write_;
  int64_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, std::string> waiting_;
  int64_t next_ = 0;
  bool writing_ = false;
  bool stopped_ = false;
};

}  // namespace lockstep

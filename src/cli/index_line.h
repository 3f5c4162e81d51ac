// IndexLine: how far a command is that reads files: on a terminal one line that is rewritten, elsewhere a
// line every few seconds.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <mutex>
#include <string_view>

#include "base/number_text.h"
#include "observe/terminal.h"

namespace lockstep {

class IndexLine {
 public:
  explicit IndexLine(std::string_view doing) : doing_(doing) {}

  void show(int64_t done, int64_t all) {
    const std::scoped_lock lock(mutex_);
    const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
    const bool last = done >= all;
    if (!last && now - shown_ < (terminal_ ? kRepaint : kLine)) return;
    // Shards that are already indexed pass in no time; a pipe is not told of them.
    if (last && !terminal_ && !painted_) return;
    shown_ = now;
    painted_ = true;
    std::cerr << fmt::format(
                     "{}{}: {:3.0f} %, {} of {}{}", terminal_ ? "\r\033[K" : "", doing_,
                     100.0 * static_cast<double>(done) / static_cast<double>(std::max<int64_t>(all, 1)),
                     bytes_text(done), bytes_text(all), terminal_ ? "" : "\n")
              << std::flush;
  }
  void finish() {
    if (terminal_ && painted_) std::cerr << "\n";
    painted_ = false;
  }

 private:
  static constexpr std::chrono::milliseconds kRepaint{100}, kLine{2000};

  std::string_view doing_;
  std::mutex mutex_;
  bool terminal_ = is_terminal(STDERR_FILENO);
  bool painted_ = false;
  std::chrono::steady_clock::time_point shown_ = std::chrono::steady_clock::now();
};

}  // namespace lockstep

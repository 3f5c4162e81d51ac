#include "launch/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace lockstep {

void Console::line(std::string_view text) {
  if (buffer_.size() + text.size() + 1 > kMostBytes) {
    ++skipped_;
    return;
  }
  if (skipped_ > 0 && buffer_.empty()) {
    buffer_ += fmt::format("({} lines are only in the log files)\n", skipped_);
    skipped_ = 0;
  }
  buffer_ += text;
  buffer_ += '\n';
}

// A pipe that poll calls writable takes PIPE_BUF bytes without blocking.
void Console::flush() {
  while (!buffer_.empty()) {
    pollfd entry = {descriptor_, POLLOUT, 0};
    if (poll(&entry, 1, 0) <= 0) return;
    const ssize_t written = write(descriptor_, buffer_.data(), std::min<size_t>(buffer_.size(), PIPE_BUF));
    if (written < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      if (errno != EPIPE) failure_ = errno;
      buffer_.clear();  // closed, or full: what comes later may be taken again
      return;
    }
    buffer_.erase(0, static_cast<size_t>(written));
  }
}

void Console::finish() {
  constexpr int kMostMilliseconds = 1000;
  flush();
  if (skipped_ > 0) line("");
  pollfd entry = {descriptor_, POLLOUT, 0};
  while (!buffer_.empty() && poll(&entry, 1, kMostMilliseconds) > 0) flush();
}

}  // namespace lockstep

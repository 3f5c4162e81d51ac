#include "launch/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace lockstep {

int Console::columns() const {
  if (isatty(descriptor_) != 1) return 0;
  constexpr int kUsual = 80;
  winsize size{};
  return ioctl(descriptor_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

void Console::erase_live() {
  if (painted_) buffer_ += "\r\x1b[K";
  painted_ = false;
}

void Console::live(std::string_view text) {
  if (text.empty()) erase_live();
  stale_ = !text.empty();
  live_ = text;
}

void Console::hide_live() {
  if (!painted_) return;
  erase_live();
  stale_ = true;
  write_buffer();
}

// The last column stays free: some terminals wrap as soon as it is written.
void Console::paint_live() {
  const int room = columns() - 1;
  if (room > 0) buffer_ += fmt::format("\r{}\x1b[K", live_.substr(0, static_cast<size_t>(room)));
  painted_ = room > 0;
  stale_ = false;
}

void Console::line(std::string_view text) {
  if (painted_) {
    erase_live();
    stale_ = true;
  }
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

void Console::flush() {
  write_buffer();
  if (!buffer_.empty() || !stale_) return;
  paint_live();
  write_buffer();
}

// A pipe that poll calls writable takes PIPE_BUF bytes without blocking.
void Console::write_buffer() {
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
  stale_ = false;
  if (painted_) buffer_ += '\n';  // what it said last stays
  painted_ = false;
  flush();
  if (skipped_ > 0) line("");
  pollfd entry = {descriptor_, POLLOUT, 0};
  while (!buffer_.empty() && poll(&entry, 1, kMostMilliseconds) > 0) flush();
}

}  // namespace lockstep

#include "launch/worker_output.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace lockstep {

void LineSplitter::feed(std::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const size_t room = kMostLength - partial_.size();
    const size_t count = std::min({end, bytes.size(), room});
    partial_ += bytes.substr(0, count);
    bytes.remove_prefix(count);
    const bool at_end = !bytes.empty() && bytes.front() == '\n';
    if (!at_end && partial_.size() < kMostLength) return;
    take(partial_);
    partial_.clear();
    if (at_end) bytes.remove_prefix(1);
  }
}

void LineSplitter::finish(const Take& take) {
  if (!partial_.empty()) take(partial_);
  partial_.clear();
}

WorkerOutput::WorkerOutput(const std::string& log_path) : log_path_(log_path) {
  if (log_path_.empty()) return;
  log_ = Descriptor(open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log_) throw UserError("cannot write the log file {}: {}", log_path_, std::strerror(errno));
}

void WorkerOutput::keep(std::string_view line) {
  last_lines_.emplace_back(line);
  if (last_lines_.size() > kLastLines) last_lines_.pop_front();
  if (!log_) return;
  std::string text(line);
  text += '\n';
  if (write(log_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return;
  // A full disk must not end a run that could still save itself elsewhere.
  log_warn("cannot write {} any more: {}", log_path_, std::strerror(errno));
  log_.reset();
}

}  // namespace lockstep

// What a worker prints: cut into lines, each passed on under the worker's name and kept in its log file, the
// last ones also in memory for the report of a failure. Memory is bounded whatever a worker prints.
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "launch/descriptor.h"

namespace lockstep {

// Gives complete lines, without their end; longer ones than kMostLength in pieces.
class LineSplitter {
 public:
  static constexpr size_t kMostLength = 8192;
  using Take = std::function<void(std::string_view line)>;

  void feed(std::string_view bytes, const Take& take);
  // What came without a line's end.
  void finish(const Take& take);

 private:
  std::string partial_;
};

class WorkerOutput {
 public:
  static constexpr size_t kLastLines = 20;

  // The log file is added to, so that a restart does not erase what led to it. An empty path: no file.
  explicit WorkerOutput(const std::string& log_path);

  void keep(std::string_view line);
  const std::deque<std::string>& last_lines() const { return last_lines_; }
  const std::string& log_path() const { return log_path_; }

 private:
  std::string log_path_;
  Descriptor log_;
  std::deque<std::string> last_lines_;
};

}  // namespace lockstep

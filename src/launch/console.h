// Where the launcher shows its workers' lines: standard output or error, written so that a terminal that is
// paused or a pipe that nobody reads never keeps it from watching the workers.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

class Console {
 public:
  explicit Console(int descriptor) : descriptor_(descriptor) {}

  // Adds a line to what is to be shown. Lines beyond the bound are counted instead.
  void line(std::string_view text);
  // Shows what can be shown now.
  void flush();
  // Tries for a while: for the end of a run.
  void finish();

  int descriptor() const { return descriptor_; }
  bool pending() const { return !buffer_.empty(); }
  // The error of the system when lines could not be shown, other than that nobody reads them any more; 0:
  // none.
  int failure() const { return failure_; }

 private:
  static constexpr size_t kMostBytes = size_t{1} << 20;

  int descriptor_;
  std::string buffer_;
  int64_t skipped_ = 0;
  int failure_ = 0;
};

}  // namespace lockstep

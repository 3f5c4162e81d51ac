// Where the launcher shows its workers' lines: standard output or error, written so that a terminal that is
// paused or a pipe that nobody reads never keeps it from watching the workers. On a terminal it also keeps a
// live line below the others, which is rewritten in place.
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
  // What the live line says from now on; empty: there is none.
  void live(std::string_view text);
  // Takes the live line off the terminal now and until the next flush, for whoever else writes there.
  void hide_live();
  // Shows what can be shown now.
  void flush();
  // Tries for a while: for the end of a run.
  void finish();

  int descriptor() const { return descriptor_; }
  bool pending() const { return !buffer_.empty() || stale_; }
  // The error of the system when lines could not be shown, other than that nobody reads them any more; 0:
  // none.
  int failure() const { return failure_; }
  // Of the terminal; 0 where it is none.
  int columns() const;

 private:
  static constexpr size_t kMostBytes = size_t{1} << 20;

  void erase_live();
  void paint_live();
  void write_buffer();

  int descriptor_;
  std::string buffer_;
  int64_t skipped_ = 0;
  int failure_ = 0;
  std::string live_;
  bool painted_ = false;  // the terminal shows it, or will once the buffer is written
  bool stale_ = false;    // it is to be painted
};

}  // namespace lockstep

// Progress: what a run shows while it trains. On a terminal one line that is rewritten, by itself or, where
// its output goes through a launcher, by that (base/live_line.h); otherwise plain lines without control
// characters, at a bounded rate: the first step, then at most one every few seconds, the last step, and every
// evaluation.
#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "observe/progress_text.h"
#include "observe/records.h"

namespace lockstep {

struct ProgressOptions {
  int64_t total_steps = 0;        // 0: not known
  bool terminal = false;          // rewrite one line
  bool relayed = false;           // with `terminal`: the launcher rewrites it
  double repaint_seconds = 0.1;   // on a terminal, at most this often
  double line_seconds = 10;       // elsewhere
  std::function<int()> width;     // columns of the terminal, asked at every repaint; 80 if empty
  std::function<double()> clock;  // seconds that only go up; the steady clock if empty
};

// For a stream that shows on this file descriptor, or on the terminal of the launcher that asks for a live
// line.
ProgressOptions progress_options_for(int file_descriptor, int64_t total_steps);

class Progress {
 public:
  Progress(std::ostream& out, ProgressOptions options);
  ~Progress();  // leaves the last line behind, complete
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A step that was skipped or rewound gets a line of its own.
  void step(const StepRecord& record);
  void evaluation(const EvalRecord& record);
  // A line of its own above the progress line.
  void message(std::string_view text);
  // The line as it stands, and no more rewriting until the next step.
  void finish();

 private:
  void show(bool now);
  void line(std::string_view text);
  void end_line();

  std::ostream& out_;
  ProgressOptions options_;
  ProgressState state_;
  double began_ = 0;
  int64_t begin_step_ = 0;
  double last_shown_ = 0;
  bool any_ = false;      // a step was seen
  bool painted_ = false;  // the terminal's cursor is on the progress line
  bool current_ = false;  // the last step was shown
};

}  // namespace lockstep

#include "observe/progress.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ostream>

#include "base/live_line.h"
#include "base/printable.h"
#include "observe/terminal.h"

namespace lockstep {
namespace {

constexpr int kUsualWidth = 80;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// 0 where no launcher asks for a live line.
int launcher_columns() {
  const char* text = std::getenv(kLiveColumnsVariable);
  int columns = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), columns);
  return columns;
}

}  // namespace

ProgressOptions progress_options_for(int file_descriptor, int64_t total_steps) {
  ProgressOptions options;
  options.total_steps = total_steps;
  options.terminal = is_terminal(file_descriptor);
  options.width = [file_descriptor] { return terminal_width(file_descriptor); };
  if (const int columns = launcher_columns(); columns > 0 && !options.terminal) {
    options.terminal = options.relayed = true;
    options.width = [columns] { return columns; };
  }
  return options;
}

Progress::Progress(std::ostream& out, ProgressOptions options) : out_(out), options_(std::move(options)) {
  if (!options_.width) options_.width = [] { return kUsualWidth; };
  if (!options_.clock) options_.clock = steady_seconds;
  state_.total_steps = options_.total_steps;
  began_ = options_.clock();
}

Progress::~Progress() { finish(); }

void Progress::step(const StepRecord& record) {
  const bool first = !any_;
  // The first step includes warming up: the time that is left is told from those after it.
  if (first || record.step <= begin_step_) {
    began_ = options_.clock();
    begin_step_ = record.step;
  }
  any_ = true;
  current_ = false;
  state_.last = record;
  state_.recent.add(record);
  state_.seconds_left.reset();
  if (state_.total_steps > 0 && record.step > begin_step_)
    state_.seconds_left = (options_.clock() - began_) / static_cast<double>(record.step - begin_step_) *
                          static_cast<double>(state_.total_steps - record.step);
  if (record.action != kApplied)
    message("step " + std::to_string(record.step) + " " + record.action +
            (record.note.empty() ? "" : ": " + record.note));
  show(first || record.step == state_.total_steps);
}

void Progress::evaluation(const EvalRecord& record) {
  if (!options_.terminal && any_ && !current_) show(true);
  message(evaluation_text(record));
}

void Progress::message(std::string_view text) { line(printable(text)); }

void Progress::finish() {
  if (any_ && !current_) show(true);
  if (painted_) end_line();
  painted_ = false;
}

// What was last shown stays, as a line like any other.
void Progress::end_line() {
  if (options_.relayed)
    out_ << live_line("") << progress_text(state_, options_.width() - 1) << "\n" << std::flush;
  else
    out_ << "\n" << std::flush;
}

void Progress::show(bool now) {
  const double clock = options_.clock();
  const double pause = options_.terminal ? options_.repaint_seconds : options_.line_seconds;
  if (!now && clock - last_shown_ < pause) return;
  last_shown_ = clock;
  current_ = true;
  if (!options_.terminal) {
    out_ << progress_text(state_, 1 << 20) << "\n" << std::flush;
    return;
  }
  painted_ = true;
  // The last column stays free: some terminals wrap as soon as it is written.
  const std::string text = progress_text(state_, options_.width() - 1);
  if (options_.relayed)
    out_ << live_line(text) << std::flush;
  else
    out_ << "\r" << text << "\x1b[K" << std::flush;
}

void Progress::line(std::string_view text) {
  if (painted_ && !options_.relayed) out_ << "\r\x1b[K";
  out_ << text << "\n" << std::flush;
  if (!painted_ || options_.relayed) return;  // the launcher shows its line again by itself
  painted_ = false;
  show(true);
}

}  // namespace lockstep

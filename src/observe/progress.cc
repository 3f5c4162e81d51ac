#include "observe/progress.h"

#include <chrono>
#include <ostream>

#include "base/printable.h"
#include "observe/terminal.h"

namespace lockstep {
namespace {

constexpr int kUsualWidth = 80;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

ProgressOptions progress_options_for(int file_descriptor, int64_t total_steps) {
  ProgressOptions options;
  options.total_steps = total_steps;
  options.terminal = is_terminal(file_descriptor);
  options.width = [file_descriptor] { return terminal_width(file_descriptor); };
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
  if (painted_) out_ << "\n" << std::flush;
  painted_ = false;
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
  // The last column stays free: some terminals wrap as soon as it is written.
  out_ << "\r" << progress_text(state_, options_.width() - 1) << "\x1b[K" << std::flush;
  painted_ = true;
}

void Progress::line(std::string_view text) {
  if (painted_) out_ << "\r\x1b[K";
  out_ << text << "\n" << std::flush;
  if (!painted_) return;
  painted_ = false;
  show(true);
}

}  // namespace lockstep

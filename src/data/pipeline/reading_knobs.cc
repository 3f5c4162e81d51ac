#include "data/pipeline/reading_knobs.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr int64_t kFirstAhead = 4;
constexpr int64_t kFirstFetch = 1 << 20;
constexpr int64_t kPatience = 256;
// Of the time, in which knobs are lowered, and in which readers are: half of them have twice the work.
constexpr double kIdle = 0.5, kHalfWouldDo = 0.6;

}  // namespace

ReadingKnobs::ReadingKnobs(const KnobLimits& limits)
    : limits_(limits),
      readers_(std::min(1, limits.waiting_readers)),
      ahead_(std::min(kFirstAhead, limits.ahead)),
      patience_(kPatience) {}

void ReadingKnobs::waited(const Wait& wait) {
  if (lowered_) patience_ *= 2;
  lowered_ = false;
  calm_ = 0;
  // Where readers never stop, batches are made as fast as they can be, and a longer queue of them is only
  // cold memory.
  if (wait.full || !wait.busy) ahead_ = std::min(2 * ahead_, limits_.ahead);
  const int most = wait.files ? limits_.waiting_readers : std::min(limits_.readers, limits_.waiting_readers);
  if (wait.busy) readers_ = std::max(readers_, std::min(2 * readers_, most));
  if (wait.files) fetch_ = std::min(std::max(2 * fetch_, kFirstFetch), limits_.fetch);
}

void ReadingKnobs::had_no_rest() {
  const int more = std::min({2 * readers_, limits_.readers, limits_.waiting_readers});
  if (more <= readers_) return;
  readers_ = more;
  if (lowered_) patience_ *= 2;
  lowered_ = false;
}

bool ReadingKnobs::did_not_wait(double idle) {
  if (++calm_ < patience_) return false;
  calm_ = 0;
  if (idle < kIdle) return true;
  lowered_ = true;
  if (idle >= kHalfWouldDo) readers_ = std::max(readers_ / 2, std::min(1, readers_));
  ahead_ = std::max(ahead_ - ahead_ / 4, std::min(kFirstAhead, limits_.ahead));
  fetch_ /= 2;
  return true;
}

}  // namespace lockstep

// PhaseTimes: where the time of a start goes: parts by name, in the order in which they were first met. Any
// thread may add.
#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct PhaseTime {
  std::string name;
  double seconds = 0;
  int64_t times = 0;
};

class PhaseTimes {
 public:
  // Adds the time of its own life.
  class Scope {
   public:
    Scope(PhaseTimes& times, std::string name) : times_(times), name_(std::move(name)) {}
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseTimes& times_;
    std::string name_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };

  void add(std::string_view name, double seconds);
  // What the body returns, and the time that it took.
  template <typename Body>
  auto timed(std::string name, const Body& body) {
    const Scope scope(*this, std::move(name));
    return body();
  }
  std::vector<PhaseTime> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<PhaseTime> phases_;
};

}  // namespace lockstep

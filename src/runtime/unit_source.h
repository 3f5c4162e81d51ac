// Who brings the parameters of units to where a plan wants them (passes/gather_params.h). A unit is brought
// once at a time, and units are waited for in the order in which they were started.
#pragma once
#include <cstdint>

namespace lockstep {

class UnitSource {
 public:
  virtual ~UnitSource() = default;
  // Begins to bring a unit into memory of the device. What was put on the compute stream before may still use
  // that memory; nothing that is put there later does, up to wait().
  virtual void start(int64_t unit, void* into) = 0;
  // What is put on the compute stream from here on finds it.
  virtual void wait(int64_t unit) = 0;
};

}  // namespace lockstep

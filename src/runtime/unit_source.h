// Who brings the parameters of units to where a plan wants them (passes/gather_params.h). A unit is brought
// once at a time, and units are waited for in the order in which they were started. The parameters of a unit
// are waited for one by one, so that the first of them is computed with while the others are on their way.
#pragma once
#include <cstdint>

namespace lockstep {

class UnitSource {
 public:
  virtual ~UnitSource() = default;
  // Begins to bring a unit into memory of the device. What was put on the compute stream before may still use
  // that memory; nothing that is put there later does, up to wait(). What lies at its end may be wanted
  // first.
  virtual void start(int64_t unit, void* into, bool from_the_end) = 0;
  // What is put on the compute stream from here on finds these bytes of it. Before the memory is given to
  // something else all of it has been waited for.
  virtual void wait(int64_t unit, int64_t begin, int64_t end) = 0;
};

}  // namespace lockstep

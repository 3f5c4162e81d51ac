// UnitReader: the parameters of units for a worker that runs a graph alone, while their owners do what it
// asks for: an evaluation, a microbatch that is looked into.
#pragma once
#include <functional>
#include <vector>

#include "passes/pipeline.h"
#include "runtime/unit_source.h"
#include "train/state/train_state.h"

namespace lockstep {

class UnitReader : public UnitSource {
 public:
  // The tensor that stands for a parameter: itself, or its average.
  using Find = std::function<const StateTensor&(std::string_view param)>;
  UnitReader(Backend& backend, std::vector<ParamUnit> units, Find find, SplitTensors::Read read);

  // Nothing is read ahead: who is asked for a piece answers at once.
  void start(int64_t unit, void* into, bool from_the_end) override;
  void wait(int64_t, int64_t, int64_t) override {}

 private:
  Backend& backend_;
  std::vector<ParamUnit> units_;
  Find find_;
  SplitTensors::Read read_;
};

}  // namespace lockstep

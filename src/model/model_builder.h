// ModelBuilder: a Builder that also records how each parameter begins, what synthetic inputs look like, and
// which statistics a model keeps. Layers made of these are in model/layers.h.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"
#include "ops/builder.h"

namespace lockstep {

// How parameters are kept. Whatever the type, ops read them as f32 values: a stored 16-bit parameter is
// widened where it is read, and taken as it is by the pass that computes in bf16.
struct ParamStorage {
  DType dtype = DType::kF32;
  bool frozen = false;
};

class ModelBuilder : public Builder {
 public:
  explicit ModelBuilder(Model& model) : Builder(model.graph), model_(model) {}

  // Of the parameters made from here on.
  void store_parameters(const ParamStorage& storage) { storage_ = storage; }

  Value normal(const std::string& name, const Shape& shape, double deviation, bool decay = true);
  Value uniform(const std::string& name, const Shape& shape, double bound, bool decay = true);
  Value zeros(const std::string& name, const Shape& shape);
  Value ones(const std::string& name, const Shape& shape);
  // Elements of the parameter made last begin at 0 instead.
  void begin_at_zero(int64_t begin, int64_t end);
  // An i32 input whose values are drawn from [0, bound).
  Value indices(const std::string& name, const Shape& shape, int64_t bound);

  // An input that the training graph writes and the evaluation graph reads.
  Value statistic(const std::string& name, const Shape& shape, float start, bool training);
  // What the training graph writes there; write_statistics adds these updates once all outputs are there.
  void keep_statistic(Value input, Value value) { statistics_.emplace_back(input, value); }
  void write_statistics();

  // The outputs of a family that picks one of many classes: loss and count, to evaluate also the choice.
  void classify(Value logits, Value labels, bool training);

 private:
  Value param_with(const std::string& name, const Shape& shape, ParamInit init);
  Model& model_;
  ParamStorage storage_;
  std::vector<std::pair<Value, Value>> statistics_;  // input, value
};

}  // namespace lockstep

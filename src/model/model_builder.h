// ModelBuilder: a Builder that also records how each parameter begins, and the layers that several families
// share.
#pragma once
#include <string>

#include "model/model.h"
#include "ops/builder.h"

namespace lockstep {

class ModelBuilder : public Builder {
 public:
  explicit ModelBuilder(Model& model) : Builder(model.graph), model_(model) {}

  Value normal(const std::string& name, const Shape& shape, double deviation, bool decay = true);
  Value uniform(const std::string& name, const Shape& shape, double bound, bool decay = true);
  Value zeros(const std::string& name, const Shape& shape);
  Value ones(const std::string& name, const Shape& shape);
  // An i32 input whose values are drawn from [0, bound).
  Value indices(const std::string& name, const Shape& shape, int64_t bound);

  // x·W + b with W stored [in, out] (GPT-2) or [out, in] (everywhere else).
  Value linear_in_out(const std::string& name, Value x, int64_t out, double deviation);
  Value linear(const std::string& name, Value x, int64_t out, double deviation);
  Value layer_norm(const std::string& name, Value x, double epsilon);
  // Means and variances are statistics that the training graph writes: call write_statistics when all outputs
  // are there.
  Value batch_norm(const std::string& name, Value x, double epsilon, bool training);
  void write_statistics();
  // The outputs of a family that picks one of many classes: loss and count, to evaluate also the choice.
  void classify(Value logits, Value labels, bool training);
  Value embedding(Value table, Value ids) { return op("embedding", {table, ids}); }

 private:
  Value param_with(const std::string& name, const Shape& shape, ParamInit init);
  Value statistic(const std::string& name, const Shape& shape, float start, bool training);
  Model& model_;
  std::vector<std::pair<Value, Value>> statistics_;  // input, value
};

}  // namespace lockstep

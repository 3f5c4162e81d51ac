#include "model/model_builder.h"

namespace lockstep {

Value ModelBuilder::param_with(const std::string& name, const Shape& shape, ParamInit init) {
  init.name = name;
  init.dtype = storage_.dtype;
  init.frozen = storage_.frozen;
  model_.params.push_back(std::move(init));
  return cast(param(name, shape, storage_.dtype, storage_.frozen), DType::kF32);
}

Value ModelBuilder::normal(const std::string& name, const Shape& shape, double deviation, bool decay) {
  return param_with(name, shape, {"", ParamInit::Kind::kNormal, 0.0, deviation, decay});
}
Value ModelBuilder::uniform(const std::string& name, const Shape& shape, double bound, bool decay) {
  return param_with(name, shape, {"", ParamInit::Kind::kUniform, -bound, bound, decay});
}
Value ModelBuilder::zeros(const std::string& name, const Shape& shape) {
  return param_with(name, shape, {"", ParamInit::Kind::kConstant, 0.0, 0.0, false});
}
Value ModelBuilder::ones(const std::string& name, const Shape& shape) {
  return param_with(name, shape, {"", ParamInit::Kind::kConstant, 1.0, 0.0, false});
}

void ModelBuilder::begin_at_zero(int64_t begin, int64_t end) {
  model_.params.back().zeros_begin = begin;
  model_.params.back().zeros_end = end;
}

Value ModelBuilder::indices(const std::string& name, const Shape& shape, int64_t bound) {
  model_.integer_inputs.emplace_back(name, bound);
  return input(name, {DType::kI32, shape});
}

Value ModelBuilder::statistic(const std::string& name, const Shape& shape, float start, bool training) {
  model_.statistics.push_back({name, start});
  return graph().add_input(name, {DType::kF32, shape}, training ? Role::kStatistic : Role::kState);
}

void ModelBuilder::write_statistics() {
  for (const auto& [input, value] : statistics_) graph().add_update(input, value);
  statistics_.clear();
}

void ModelBuilder::classify(Value logits, Value labels, bool training) {
  const auto loss = op_all("cross_entropy", {logits, labels});
  graph().add_output(loss[0]);
  graph().add_output(loss[1]);
  if (!training) graph().add_output(op("argmax", {logits}));
}

}  // namespace lockstep

#include "model/model_builder.h"

namespace lockstep {

Value ModelBuilder::param_with(const std::string& name, const Shape& shape, ParamInit init) {
  init.name = name;
  model_.params.push_back(std::move(init));
  return param(name, shape);
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

Value ModelBuilder::indices(const std::string& name, const Shape& shape, int64_t bound) {
  model_.integer_inputs.emplace_back(name, bound);
  return input(name, {DType::kI32, shape});
}

Value ModelBuilder::linear_in_out(const std::string& name, Value x, int64_t out, double deviation) {
  const Value weight = normal(name + ".weight", {shape(x)[-1], out}, deviation);
  const Value bias = zeros(name + ".bias", {out});
  return add(matmul(x, weight), bias);
}

Value ModelBuilder::linear(const std::string& name, Value x, int64_t out, double deviation) {
  const Value weight = normal(name + ".weight", {out, shape(x)[-1]}, deviation);
  const Value bias = zeros(name + ".bias", {out});
  return add(matmul(x, weight, false, true), bias);
}

Value ModelBuilder::layer_norm(const std::string& name, Value x, double epsilon) {
  const Value weight = ones(name + ".weight", {shape(x)[-1]});
  const Value bias = zeros(name + ".bias", {shape(x)[-1]});
  return op("layer_norm", {x, weight, bias}, {{"epsilon", epsilon}});
}

Value ModelBuilder::statistic(const std::string& name, const Shape& shape, float start, bool training) {
  model_.statistics.push_back({name, start});
  return graph().add_input(name, {DType::kF32, shape}, training ? Role::kStatistic : Role::kState);
}

Value ModelBuilder::batch_norm(const std::string& name, Value x, double epsilon, bool training) {
  const Shape channels{shape(x)[-1]};
  const Value weight = ones(name + ".weight", channels);
  const Value bias = zeros(name + ".bias", channels);
  const Value mean = statistic(name + ".running_mean", channels, 0, training);
  const Value variance = statistic(name + ".running_var", channels, 1, training);
  const Attributes attributes{{"epsilon", epsilon}, {"training", training}};
  if (!training) return op("batch_norm", {x, weight, bias, mean, variance}, attributes);
  const auto results = op_all("batch_norm", {x, weight, bias}, attributes);
  statistics_.emplace_back(mean, results[1]);
  statistics_.emplace_back(variance, results[3]);
  return results[0];
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

#include "model/layers.h"

#include <cmath>

#include "base/error.h"

namespace lockstep {
namespace {

// The attributes that both forms of attention take, and the operands that mask.
Attributes attributes_of(const AttentionLayer& layer, int64_t head_dim) {
  const double scale = layer.scale != 0 ? layer.scale : 1.0 / std::sqrt(static_cast<double>(head_dim));
  Attributes attributes{{"causal", layer.causal}, {"scale", scale}};
  if (layer.window > 0) attributes.set("window", layer.window);
  if (layer.cap > 0) attributes.set("cap", layer.cap);
  const bool keys = layer.keys_visible.valid();
  if (keys || layer.documents.valid())
    attributes.set("mask", std::string(!keys                     ? "documents"
                                       : layer.documents.valid() ? "keys+documents"
                                                                 : "keys"));
  return attributes;
}

std::vector<Value> with_masks(std::vector<Value> operands, const AttentionLayer& layer) {
  for (const Value mask : {layer.keys_visible, layer.documents})
    if (mask.valid()) operands.push_back(mask);
  return operands;
}

}  // namespace

Value Layers::linear(const std::string& name, Value x, int64_t out, double deviation) {
  const Value weight = normal(name + ".weight", {out, shape(x)[-1]}, deviation);
  const Value bias = zeros(name + ".bias", {out});
  return add(matmul(x, weight, false, true), bias);
}

Value Layers::linear_in_out(const std::string& name, Value x, int64_t out, double deviation) {
  const Value weight = normal(name + ".weight", {shape(x)[-1], out}, deviation);
  const Value bias = zeros(name + ".bias", {out});
  return add(matmul(x, weight), bias);
}

Value Layers::linear_without_bias(const std::string& name, Value x, int64_t out, double deviation) {
  return matmul(x, normal(name + ".weight", {out, shape(x)[-1]}, deviation), false, true);
}

Value Layers::layer_norm(const std::string& name, Value x, double epsilon) {
  const Value weight = ones(name + ".weight", {shape(x)[-1]});
  const Value bias = zeros(name + ".bias", {shape(x)[-1]});
  return op("layer_norm", {x, weight, bias}, {{"epsilon", epsilon}});
}

Value Layers::rms_norm(const std::string& name, Value x, double epsilon) {
  return op("rms_norm", {x, ones(name + ".weight", {shape(x)[-1]})}, {{"epsilon", epsilon}});
}

Value Layers::batch_norm(const std::string& name, Value x, double epsilon, bool training) {
  const Shape channels{shape(x)[-1]};
  const Value weight = ones(name + ".weight", channels);
  const Value bias = zeros(name + ".bias", channels);
  const Value mean = statistic(name + ".running_mean", channels, 0, training);
  const Value variance = statistic(name + ".running_var", channels, 1, training);
  const Attributes attributes{{"epsilon", epsilon}, {"training", training}};
  if (!training) return op("batch_norm", {x, weight, bias, mean, variance}, attributes);
  const auto results = op_all("batch_norm", {x, weight, bias}, attributes);
  keep_statistic(mean, results[1]);
  keep_statistic(variance, results[3]);
  return results[0];
}

Value Layers::gated_mlp(const std::string& name, Value x, int64_t hidden, double deviation,
                        double out_deviation) {
  const int64_t width = shape(x)[-1];
  const Value gate = op("silu", {linear_without_bias(name + ".gate_proj", x, hidden, deviation)});
  const Value up = linear_without_bias(name + ".up_proj", x, hidden, deviation);
  return linear_without_bias(name + ".down_proj", mul(gate, up), width, out_deviation);
}

Value Layers::embedding(const std::string& name, Value ids, int64_t rows, int64_t dim, double deviation) {
  return embedding(normal(name + ".weight", {rows, dim}, deviation), ids);
}

Layers::Table Layers::padded_embedding(const std::string& name, Value ids, int64_t rows, int64_t dim,
                                       double deviation, std::optional<int64_t> padding) {
  const Value table = normal(name + ".weight", {rows, dim}, deviation);
  if (!padding) return {table, embedding(table, ids)};
  begin_at_zero(*padding * dim, (*padding + 1) * dim);
  return {table, op("embedding", {table, ids}, {{"padding", *padding}})};
}

Value Layers::split_heads(Value x, int64_t heads) {
  const Shape& whole = shape(x);
  return reshape(x, {whole[0], whole[1], heads, whole[2] / heads});
}

Value Layers::rope(Value heads, double base, Value positions) {
  if (!positions.valid()) return op("rope", {heads}, {{"base", base}});
  return op("rope", {heads, positions}, {{"base", base}});
}

Value Layers::attention(Value q, Value k, Value v, const AttentionLayer& layer) {
  const Shape queries = shape(q);
  LOCKSTEP_CHECK(queries[2] == layer.heads && shape(k)[2] == layer.kv_heads,
                 "attention of {} and {} heads is given {} and {}", layer.heads, layer.kv_heads, queries[2],
                 shape(k)[2]);
  Attributes attributes = attributes_of(layer, queries[3]);
  std::vector<Value> operands = with_masks({q, k, v}, layer);
  drop_weights(layer, attributes, operands);
  const Value mixed = graph().emit_all("attention", operands, attributes)[0];
  return reshape(mixed, {queries[0], queries[1], queries[2] * queries[3]});
}

Value Layers::attention_qkv(Value qkv, const AttentionLayer& layer) {
  const int64_t head_dim = shape(qkv)[2] / (layer.heads + 2 * layer.kv_heads);
  Attributes attributes = attributes_of(layer, head_dim);
  attributes.set("heads", layer.heads);
  attributes.set("kv_heads", layer.kv_heads);
  std::vector<Value> operands = with_masks({qkv}, layer);
  drop_weights(layer, attributes, operands);
  return graph().emit_all("attention_qkv", operands, attributes)[0];
}

void Layers::drop_weights(const AttentionLayer& layer, Attributes& attributes, std::vector<Value>& operands) {
  if (layer.dropout == 0) return;
  attributes.set("dropout", layer.dropout);
  attributes.set("key", next_key_++);
  operands.push_back(rng());
}

void Layers::use_dropout(double probability) {
  dropout_ = probability;
  if (probability > 0) rng();
}

Value Layers::rng() {
  if (!rng_.valid()) rng_ = input("rng", {DType::kI64, {2}});
  return rng_;
}

Value Layers::dropout(Value x) { return dropout(x, dropout_); }

Value Layers::dropout(Value x, double probability) {
  if (probability == 0) return x;
  return op("dropout", {x, rng()}, {{"p", probability}, {"key", next_key_++}});
}

}  // namespace lockstep

#include "model/hf/decoder.h"

#include "base/error.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

Task task_of(HfHead head) { return head == HfHead::kSequenceClass ? Task::kClassify : Task::kNextToken; }

}  // namespace

void HfDecoder::read_head(const HfConfig& config, HfHead head, bool tied_otherwise,
                          std::optional<int64_t> padding_otherwise) {
  deviation = config.number("initializer_range", 0.02);
  if (!(deviation >= 0)) config.fail("initializer_range", "a standard deviation is at least 0");
  tied = config.flag("tie_word_embeddings", tied_otherwise) && head == HfHead::kCausalLm;
  if (tied) tied_names.emplace_back(lm_head_name + ".weight", embedding_name + ".weight");
  padding_token = config.maybe_integer("pad_token_id");
  if (!padding_token) padding_token = padding_otherwise;
  // Some folders have -1 for none.
  if (padding_token && (*padding_token < 0 || *padding_token >= vocab)) padding_token.reset();
  if (head == HfHead::kCausalLm) {
    config.ignore({"problem_type", "classifier_dropout", "hidden_dropout"});
    return;
  }
  classes = read_classes(config);
  if (head == HfHead::kSequenceClass) {
    config.require("problem_type", "\"single_label_classification\"",
                   "the loss is that of one class of several");
    if (classes < 2) config.fail("id2label", "one label means regression, which is not implemented");
    config.ignore({"classifier_dropout", "hidden_dropout"});
    return;
  }
  config.ignore({"problem_type"});
  const double hidden = config.number("hidden_dropout", 0.1);
  classifier_dropout = config.number("classifier_dropout", hidden);
}

int64_t HfDecoder::read_layers(const HfConfig& config, std::string_view key) {
  constexpr int64_t kMost = 10000;
  const int64_t layers = config.size(key);
  if (layers > kMost) config.fail(key, fmt::format("it must be at most {}", kMost));
  return layers;
}

Model HfDecoder::build(const HfGraph& graph) const {
  LOCKSTEP_CHECK(graph.cache == 0 || head == HfHead::kCausalLm, "only a causal LM generates");
  LOCKSTEP_CHECK(graph.cache == 0 || !(graph.documents || graph.padded),
                 "the graph that generates has a mask of its own");
  Model model{
      Graph(all_ops(), std::string(model_type)), {}, graph.batch, graph.batch * graph.seq, {}, task_of(head)};
  DecoderGraph b(model, graph, *this);
  b.finish(body(b));
  return model;
}

DecoderGraph::DecoderGraph(Model& model, const HfGraph& graph, const HfDecoder& decoder)
    : Layers(model), graph_(graph), decoder_(decoder) {
  const Shape row{graph.batch, graph.seq};
  tokens_ = indices("tokens", row, decoder.vocab);
  if (generates()) {
    positions_ = indices("positions", row, graph.positions());
    slots_ = input("slots", {DType::kI32, {graph.seq}});
    visible_ = input("visible", {DType::kU8, {graph.batch, graph.seq > 1 ? graph.seq : graph.cache}});
    return;
  }
  switch (decoder.head) {
    case HfHead::kSequenceClass: targets_ = indices("labels", {graph.batch}, decoder.classes); break;
    case HfHead::kTokenClass: targets_ = indices("targets", row, decoder.classes); break;
    default: targets_ = indices("targets", row, decoder.vocab);
  }
  if (graph.documents) {
    documents_ = input("documents", {DType::kI32, row});
    positions_ = indices("positions", row, graph.seq);
  }
  if (graph.padded) visible_ = input("keys_visible", {DType::kU8, row});
}

Value DecoderGraph::embed_tokens(int64_t width) {
  const Table table = padded_embedding(decoder_.embedding_name, tokens_, decoder_.vocab, width,
                                       decoder_.deviation, decoder_.embedding_padding);
  table_ = table.table;
  return table.rows;
}

Value DecoderGraph::linear(const std::string& name, Value x, int64_t out, bool bias,
                           std::optional<double> deviation) {
  const double spread = deviation.value_or(decoder_.deviation);
  return bias ? Layers::linear(name, x, out, spread) : linear_without_bias(name, x, out, spread);
}

Value DecoderGraph::turned(Value heads, const HfRotation& rotation, int64_t count) {
  Attributes attributes{{"base", rotation.theta}};
  if (!rotation.frequencies.empty()) attributes.set("frequencies", rotation.frequencies);
  if (rotation.factor != 1) attributes.set("factor", rotation.factor);
  if (rotation.dim != shape(heads)[3]) attributes.set("rotary_dim", rotation.dim);
  if (count > 0) attributes.set("heads", count);
  if (generates()) attributes.set("max_position", graph_.positions());
  return positions_.valid() ? op("rope", {heads, positions_}, attributes) : op("rope", {heads}, attributes);
}

AttentionLayer DecoderGraph::rule_of(const DecoderAttention& layer) const {
  // A window that reaches over everything is none.
  const int64_t window = layer.window < graph_.seq ? layer.window : 0;
  return AttentionLayer{.heads = layer.heads,
                        .kv_heads = layer.kv_heads,
                        .causal = true,
                        .keys_visible = visible_,
                        .documents = documents_,
                        .window = window,
                        .scale = layer.scale,
                        .cap = layer.cap,
                        .dropout = in_training(decoder_.attention_dropout)};
}

Value DecoderGraph::attend(Value q, Value k, Value v, const DecoderAttention& layer) {
  return generates() ? attend_cached(q, k, v, layer) : Layers::attention(q, k, v, rule_of(layer));
}

// The slots of a layer's cache with these rows in their places.
Value DecoderGraph::kept(const std::string& name, Value rows, int64_t slots, Value where) {
  const Type type{graph_.cache_type, shape(rows).with(1, slots)};
  const Value cache = graph().add_input(name, type, Role::kState);
  const Value filled = op("put_rows", {cache, where, cast(rows, type.dtype)});
  filled_.emplace_back(cache, filled);
  return cast(filled, DType::kF32);
}

Value DecoderGraph::attend_cached(Value q, Value k, Value v, const DecoderAttention& layer) {
  const bool slides = layer.window > 0 && layer.window < graph_.cache;
  if (slides && window_ == 0) {
    window_ = layer.window;
    window_slots_ = input("window_slots", {DType::kI32, {graph_.seq}});
    if (graph_.seq == 1) window_visible_ = input("window_visible", {DType::kU8, {graph_.batch, window_}});
  }
  LOCKSTEP_CHECK(!slides || layer.window == window_, "windows of {} and {} tokens", window_, layer.window);
  const int64_t slots = slides ? window_ : graph_.cache;
  const Value where = slides ? window_slots_ : slots_;
  const std::string name = fmt::format("cache.{}.", next_layer_++);
  const Value keys = kept(name + "key", k, slots, where);
  const Value values = kept(name + "value", v, slots, where);
  AttentionLayer rule = rule_of(layer);
  if (graph_.seq > 1) return Layers::attention(q, k, v, rule);
  if (slides) rule.keys_visible = window_visible_;
  return Layers::attention(q, keys, values, rule);
}

Value DecoderGraph::attend_packed(Value qkv, const DecoderAttention& layer) {
  if (!generates()) return Layers::attention_qkv(qkv, rule_of(layer));
  const int64_t head_dim = shape(qkv)[2] / (layer.heads + 2 * layer.kv_heads);
  const auto heads = [&](int64_t first, int64_t count) {
    return split_heads(slice(qkv, 2, first * head_dim, (first + count) * head_dim), count);
  };
  const Value q = heads(0, layer.heads), k = heads(layer.heads, layer.kv_heads);
  return attend(q, k, heads(layer.heads + layer.kv_heads, layer.kv_heads), layer);
}

Value DecoderGraph::learned_positions(const std::string& name, int64_t width) {
  if (graph_.positions() > decoder_.max_positions)
    throw UserError("sequences of {} tokens are asked for; the model's table of positions has {} rows",
                    graph_.positions(), decoder_.max_positions);
  const Value table = normal(name + ".weight", {decoder_.max_positions, width}, decoder_.deviation);
  if (positions_.valid()) return embedding(table, positions_);
  return graph_.seq == decoder_.max_positions ? table : slice(table, 0, 0, graph_.seq);
}

Value DecoderGraph::logits(Value rows) {
  const Value plain = decoder_.tied ? matmul(rows, table_, false, true)
                                    : linear(decoder_.lm_head_name, rows, decoder_.vocab, false);
  return decoder_.logit_cap == 0 ? plain : capped(plain, decoder_.logit_cap);
}

Value DecoderGraph::capped(Value x, double cap) { return scale(tanh(scale(x, 1 / cap)), cap); }

void DecoderGraph::finish(Value x) {
  const int64_t width = shape(x)[2];
  if (generates()) {
    const Value last = slice(x, 1, graph_.seq - 1, graph_.seq);
    graph().add_output(logits(reshape(last, {graph_.batch, width})));
    for (const auto& [cache, filled] : filled_) graph().add_update(cache, filled);
    return;
  }
  switch (decoder_.head) {
    case HfHead::kSequenceClass: return classify_sequences(x);
    case HfHead::kTokenClass: return classify_tokens(x);
    default: break;
  }
  const int64_t rows = graph_.batch * graph_.seq;
  const Value scores = logits(reshape(x, {rows, width}));
  classify(scores, reshape(targets_, {rows}), graph_.training);
}

// The hidden state of the last token that is no padding, per sequence [B,C].
Value DecoderGraph::last_token_rows(Value x) {
  const int64_t width = shape(x)[2];
  const Shape row{graph_.batch, graph_.seq};
  if (!decoder_.padding_token && !visible_.valid())
    return reshape(slice(x, 1, graph_.seq - 1, graph_.seq), {graph_.batch, width});
  const Value ids = decoder_.padding_token ? tokens_ : cast(visible_, DType::kI32);
  const auto padding = static_cast<double>(decoder_.padding_token.value_or(0));
  const Value held = indicator("ne", ids, constant(padding, {DType::kI32, {}}));
  const std::vector<int64_t> extents(row.begin(), row.end());
  const Value index = op("iota", {}, {{"shape", extents}, {"axis", int64_t{1}}, {"dtype", DType::kF32}});
  const Value last = max(mul(held, index), {1}, true);
  const Value chosen = reshape(indicator("eq", index, last), {graph_.batch, 1, graph_.seq});
  return reshape(matmul(chosen, x), {graph_.batch, width});
}

void DecoderGraph::classify_sequences(Value x) {
  classify(linear("score", last_token_rows(x), decoder_.classes, false), targets_, graph_.training);
}

void DecoderGraph::classify_tokens(Value x) {
  const int64_t rows = graph_.batch * graph_.seq;
  const Value kept = dropout(reshape(x, {rows, shape(x)[2]}), in_training(decoder_.classifier_dropout));
  const Value scores = linear(decoder_.token_head_name, kept, decoder_.classes, true);
  classify(scores, reshape(targets_, {rows}), graph_.training);
}

}  // namespace lockstep

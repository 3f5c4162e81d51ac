#include "model/hf/text_encoder.h"

#include "base/error.h"
#include "ops/registry.h"

namespace lockstep {

int64_t read_class_count(const HfConfig& config, HfHead head) {
  if (head == HfHead::kMaskedLm) {
    config.ignore({"problem_type"});
    return 0;
  }
  const int64_t classes = read_classes(config);
  if (head == HfHead::kTokenClass) {
    config.ignore({"problem_type"});
    return classes;
  }
  config.require("problem_type", "\"single_label_classification\"",
                 "the loss is that of one class of several");
  if (classes < 2) config.fail("id2label", "one label means regression, which is not implemented");
  return classes;
}

int64_t read_padding(const HfConfig& config, int64_t otherwise, int64_t vocab) {
  const int64_t padding = config.integer("pad_token_id", otherwise);
  if (padding < 0 || padding >= vocab)
    config.fail("pad_token_id", fmt::format("it is a token of the vocabulary of {}", vocab));
  return padding;
}

double read_dropout(const HfConfig& config, std::string_view key, double otherwise) {
  const double probability = config.number(key, otherwise);
  if (!(probability >= 0 && probability < 1))
    config.fail(key, "a probability of dropout is at least 0 and below 1");
  return probability;
}

void check_head_width(const HfConfig& config, std::string_view key, int64_t dim, int64_t heads) {
  if (dim % heads != 0) config.fail(key, fmt::format("it does not divide the width of {}", dim));
}

Model HfTextEncoder::build(const HfGraph& graph) const {
  LOCKSTEP_CHECK(graph.cache == 0, "{} does not generate", model_type);
  if (graph.seq > max_positions)
    throw UserError("rows of {} tokens are too long: this {} has positions for {}; use shorter ones",
                    graph.seq, model_type, max_positions);
  const bool sequences = head == HfHead::kSequenceClass;
  Model model{Graph(all_ops(), std::string(model_type)),     {}, graph.batch, graph.batch * graph.seq, {},
              sequences ? Task::kClassify : Task::kNextToken};
  EncoderGraph b(model, graph, *this);
  const Value answers =
      sequences ? b.indices("labels", {graph.batch}, classes)
                : b.indices("targets", {graph.batch, graph.seq}, head == HfHead::kMaskedLm ? vocab : classes);
  const Value scores = logits(b);
  b.classify(scores, b.reshape(answers, {b.shape(scores)[0]}), graph.training);
  return model;
}

EncoderGraph::EncoderGraph(Model& model, const HfGraph& graph, const HfTextEncoder& encoder)
    : Layers(model),
      graph_(graph),
      encoder_(encoder),
      attention_{.heads = encoder.heads,
                 .kv_heads = encoder.heads,
                 .dropout = graph.training ? encoder.attention_dropout : 0} {
  const Shape each{graph.batch, graph.seq};
  tokens_ = indices("tokens", each, encoder.vocab);
  if (graph.padded) attention_.keys_visible = input("keys_visible", {DType::kU8, each});
  if (graph.documents) {
    attention_.documents = input("documents", {DType::kI32, each});
    positions_ = indices("positions", each, graph.seq);
  }
}

Value EncoderGraph::padded_table(const std::string& name, int64_t rows) {
  const Value table = normal(name + ".weight", {rows, encoder_.dim}, encoder_.deviation);
  begin_at_zero(*encoder_.padding_token * encoder_.dim, (*encoder_.padding_token + 1) * encoder_.dim);
  return table;
}

Value EncoderGraph::padded_rows(Value table, Value ids) {
  return op("embedding", {table, ids}, {{"padding", *encoder_.padding_token}});
}

Value EncoderGraph::position_rows(const std::string& name, int64_t rows) {
  const Value table = normal(name + ".weight", {rows, encoder_.dim}, encoder_.deviation);
  return positions_.valid() ? embedding(table, positions_) : slice(table, 0, 0, graph_.seq);
}

Value EncoderGraph::type_rows(const std::string& name) {
  const Value table = normal(name + ".weight", {encoder_.types, encoder_.dim}, encoder_.deviation);
  if (!graph_.segments) return slice(table, 0, 0, 1);
  return embedding(table, indices("segments", {graph_.batch, graph_.seq}, encoder_.types));
}

Value EncoderGraph::attend(const std::string& query, const std::string& key, const std::string& value,
                           Value x) {
  const auto heads = [&](const std::string& name) {
    return split_heads(linear(name, x, encoder_.dim), encoder_.heads);
  };
  const Value q = heads(query);
  const Value k = heads(key);
  const Value v = heads(value);
  return attention(q, k, v, attention_);
}

Value EncoderGraph::first(Value x) { return reshape(slice(x, 1, 0, 1), {graph_.batch, shape(x)[2]}); }

Value EncoderGraph::rows(Value x) { return reshape(x, {graph_.batch * graph_.seq, shape(x)[2]}); }

}  // namespace lockstep

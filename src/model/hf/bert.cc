// bert: the encoder of Devlin et al. (2018), under the heads for masked LM, sequences and tokens.
#include "model/hf/bert.h"

namespace lockstep {

void BertBody::read_sizes(const HfConfig& config, HfHead head, const Defaults& defaults) {
  vocab = config.size("vocab_size", defaults.vocab, 1);
  dim = config.size("hidden_size", 768, 1);
  layers = config.size("num_hidden_layers", 12, 1);
  heads = config.size("num_attention_heads", 12, 1);
  check_head_width(config, "num_attention_heads", dim, heads);
  hidden = config.size("intermediate_size", 3072, 1);
  max_positions = position_rows = config.size("max_position_embeddings", 512, 1);
  types = config.size("type_vocab_size", 2, 1);
  epsilon = config.number("layer_norm_eps", 1e-12);
  deviation = config.number("initializer_range", 0.02);
  activation = read_activation(config, "hidden_act", "gelu");
  dropout = read_dropout(config, "hidden_dropout_prob", 0.1);
  attention_dropout = read_dropout(config, "attention_probs_dropout_prob", 0.1);
  classifier_dropout = read_dropout(config, "classifier_dropout", dropout);
  padding_token = read_padding(config, defaults.padding, vocab);
  classes = read_class_count(config, head);
  config.require("position_embedding_type", "\"absolute\"", "relative positions are not implemented");
  config.require("embedding_size", "null", "tokens of another width than the layers are not implemented");
  if (head == HfHead::kMaskedLm)
    config.require("tie_word_embeddings", "true", "a head with a table of its own is not implemented");
  config.ignore({"tie_word_embeddings", "directionality", "pooler_fc_size", "pooler_num_attention_heads",
                 "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"});
}

Value BertBody::positions(EncoderGraph& b, const std::string& name) const {
  return b.position_rows(name, position_rows);
}

Value BertBody::embeddings(EncoderGraph& b, const std::string& name, Value table) const {
  Value x = b.padded_rows(table, b.tokens());
  x = b.add(x, b.type_rows(name + "token_type_embeddings"));
  x = b.add(x, positions(b, name + "position_embeddings"));
  return b.dropout(b.norm(name + "LayerNorm", x));
}

Value BertBody::block(EncoderGraph& b, const std::string& name, Value x) const {
  x = b.op("checkpoint", {x});
  const std::string self = name + "attention.self.";
  const Value mixed = b.attend(self + "query", self + "key", self + "value", x);
  x = b.add(b.dropout(b.linear(name + "attention.output.dense", mixed, dim)), x);
  x = b.norm(name + "attention.output.LayerNorm", x);
  const Value wide = b.act(b.linear(name + "intermediate.dense", x, hidden));
  x = b.add(b.dropout(b.linear(name + "output.dense", wide, dim)), x);
  return b.norm(name + "output.LayerNorm", x);
}

Value BertBody::body(EncoderGraph& b, const std::string& name, Value table) const {
  Value x = embeddings(b, name + "embeddings.", table);
  for (int64_t n = 0; n < layers; ++n) x = block(b, fmt::format("{}encoder.layer.{}.", name, n), x);
  return x;
}

namespace {

class HfBert final : public BertBody {
 public:
  HfBert(const HfConfig& config, HfHead head) {
    read_sizes(config, head, {.vocab = 30522, .padding = 0});
    base_prefix = "bert.";
    if (head == HfHead::kMaskedLm)
      tied_names = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                    {"cls.predictions.decoder.bias", "cls.predictions.bias"}};
  }

 private:
  Value logits(EncoderGraph& b) const override {
    const Value table = b.padded_table("bert.embeddings.word_embeddings", vocab);
    const Value x = body(b, "bert.", table);
    if (head == HfHead::kMaskedLm) return masked_lm(b, b.rows(x), table);
    if (head == HfHead::kTokenClass)
      return b.linear("classifier", b.dropout(b.rows(x), classifier_dropout), classes);
    const Value pooled = b.tanh(b.linear("bert.pooler.dense", b.first(x), dim));
    return b.linear("classifier", b.dropout(pooled, classifier_dropout), classes);
  }

  Value masked_lm(EncoderGraph& b, Value x, Value table) const {
    const std::string name = "cls.predictions.";
    x = b.act(b.linear(name + "transform.dense", x, dim));
    x = b.norm(name + "transform.LayerNorm", x);
    return b.add(b.matmul(x, table, false, true), b.zeros(name + "bias", {vocab}));
  }
};

}  // namespace

HfFamily bert_hf_family() {
  return {"bert",
          {{"BertForMaskedLM", HfHead::kMaskedLm},
           {"BertForSequenceClassification", HfHead::kSequenceClass},
           {"BertForTokenClassification", HfHead::kTokenClass}},
          [](const HfConfig& config, HfHead head) -> std::unique_ptr<HfModel> {
            return std::make_unique<HfBert>(config, head);
          }};
}

}  // namespace lockstep

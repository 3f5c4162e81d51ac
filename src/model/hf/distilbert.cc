// distilbert: BERT without types of tokens and pooler, half as deep (Sanh et al., 2019).
#include "model/hf/text_encoder.h"

namespace lockstep {
namespace {

class HfDistilBert final : public HfTextEncoder {
 public:
  HfDistilBert(const HfConfig& config, HfHead head) {
    vocab = config.size("vocab_size", 30522, 1);
    dim = config.size("dim", 768, 1);
    layers = config.size("n_layers", 6, 1);
    heads = config.size("n_heads", 12, 1);
    check_head_width(config, "n_heads", dim, heads);
    hidden = config.size("hidden_dim", 3072, 1);
    max_positions = config.size("max_position_embeddings", 512, 1);
    deviation = config.number("initializer_range", 0.02);
    activation = read_activation(config, "activation", "gelu");
    dropout = read_dropout(config, "dropout", 0.1);
    attention_dropout = read_dropout(config, "attention_dropout", 0.1);
    classifier_dropout = read_dropout(config, "seq_classif_dropout", 0.2);
    padding_token = read_padding(config, 0, vocab);
    classes = read_class_count(config, head);
    config.require("sinusoidal_pos_embds", "false",
                   "positions that are not learnt are not implemented (versions of transformers disagree "
                   "whether they are trained)");
    if (head == HfHead::kMaskedLm) {
      config.require("tie_word_embeddings", "true", "a head with a table of its own is not implemented");
      tied_names = {{"vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"}};
    }
    config.ignore({"tie_word_embeddings", "tie_weights_", "qa_dropout"});
    base_prefix = "distilbert.";
  }

 private:
  Value logits(EncoderGraph& b) const override {
    const Value table = b.padded_table("distilbert.embeddings.word_embeddings", vocab);
    Value x = embeddings(b, "distilbert.embeddings.", table);
    for (int64_t n = 0; n < layers; ++n) x = block(b, fmt::format("distilbert.transformer.layer.{}.", n), x);
    if (head == HfHead::kMaskedLm) return masked_lm(b, b.rows(x), table);
    if (head == HfHead::kTokenClass) return b.linear("classifier", b.dropout(b.rows(x)), classes);
    const Value first = b.op("relu", {b.linear("pre_classifier", b.first(x), dim)});
    return b.linear("classifier", b.dropout(first, classifier_dropout), classes);
  }

  Value embeddings(EncoderGraph& b, const std::string& name, Value table) const {
    Value x = b.padded_rows(table, b.tokens());
    x = b.add(x, b.position_rows(name + "position_embeddings", max_positions));
    return b.dropout(b.norm(name + "LayerNorm", x));
  }

  // No dropout behind attention: only its weights have one.
  Value block(EncoderGraph& b, const std::string& name, Value x) const {
    x = b.op("checkpoint", {x});
    const std::string self = name + "attention.";
    const Value mixed = b.attend(self + "q_lin", self + "k_lin", self + "v_lin", x);
    x = b.norm(name + "sa_layer_norm", b.add(b.linear(self + "out_lin", mixed, dim), x));
    const Value wide = b.act(b.linear(name + "ffn.lin1", x, hidden));
    return b.norm(name + "output_layer_norm", b.add(b.dropout(b.linear(name + "ffn.lin2", wide, dim)), x));
  }

  Value masked_lm(EncoderGraph& b, Value x, Value table) const {
    x = b.norm("vocab_layer_norm", b.act(b.linear("vocab_transform", x, dim)));
    return b.add(b.matmul(x, table, false, true), b.zeros("vocab_projector.bias", {vocab}));
  }
};

}  // namespace

HfFamily distilbert_hf_family() {
  return {"distilbert",
          {{"DistilBertForMaskedLM", HfHead::kMaskedLm},
           {"DistilBertForSequenceClassification", HfHead::kSequenceClass},
           {"DistilBertForTokenClassification", HfHead::kTokenClass}},
          [](const HfConfig& config, HfHead head) -> std::unique_ptr<HfModel> {
            return std::make_unique<HfDistilBert>(config, head);
          }};
}

}  // namespace lockstep

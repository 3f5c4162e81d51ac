// roberta: BERT's body with positions counted past the padding, and heads of its own (Liu et al., 2019).
#include "model/hf/bert.h"

namespace lockstep {
namespace {

class HfRoberta final : public BertBody {
 public:
  HfRoberta(const HfConfig& config, HfHead head) {
    read_sizes(config, head, {.vocab = 50265, .padding = 1});
    base_prefix = "roberta.";
    // The table has rows for the padding's position and those before it.
    max_positions = position_rows - *padding_token - 1;
    if (max_positions < 1)
      config.fail("max_position_embeddings",
                  fmt::format("positions begin after the padding token, {}", *padding_token));
    if (head == HfHead::kMaskedLm)
      tied_names = {{"lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"},
                    {"lm_head.decoder.bias", "lm_head.bias"}};
  }

 private:
  // A token's position is how many tokens stand up to it, itself included, past the padding's number; padding
  // has the padding's number.
  Value positions(EncoderGraph& b, const std::string& name) const override {
    const Value table = b.padded_table(name, position_rows);
    const auto whole = [&](int64_t value) {
      return b.constant(static_cast<double>(value), {DType::kI32, {}});
    };
    if (b.positions().valid()) return b.padded_rows(table, b.add(b.positions(), whole(*padding_token + 1)));
    const Shape each = b.shape(b.tokens());
    const Value padding = b.broadcast(whole(*padding_token), each);
    const Value holds = b.cast(b.compare("ne", b.tokens(), padding), DType::kI32);
    return b.padded_rows(table, b.add(b.mul(running_count(b, holds), holds), padding));
  }

  // Sums up to each position of [B,T], in steps that double what they reach.
  static Value running_count(EncoderGraph& b, Value x) {
    const int64_t batch = b.shape(x)[0], seq = b.shape(x)[1];
    for (int64_t reach = 1; reach < seq; reach *= 2) {
      const Value zeros = b.constant(0, {DType::kI32, {batch, reach}});
      x = b.add(x, b.concat({zeros, b.slice(x, 1, 0, seq - reach)}, 1));
    }
    return x;
  }

  Value logits(EncoderGraph& b) const override {
    const Value table = b.padded_table("roberta.embeddings.word_embeddings", vocab);
    const Value x = body(b, "roberta.", table);
    if (head == HfHead::kMaskedLm) return masked_lm(b, b.rows(x), table);
    if (head == HfHead::kTokenClass)
      return b.linear("classifier", b.dropout(b.rows(x), classifier_dropout), classes);
    const Value first = b.dropout(b.first(x), classifier_dropout);
    const Value wide = b.tanh(b.linear("classifier.dense", first, dim));
    return b.linear("classifier.out_proj", b.dropout(wide, classifier_dropout), classes);
  }

  // The head has the exact gelu whatever the body's activation.
  Value masked_lm(EncoderGraph& b, Value x, Value table) const {
    x = b.op("gelu", {b.linear("lm_head.dense", x, dim)});
    x = b.norm("lm_head.layer_norm", x);
    return b.add(b.matmul(x, table, false, true), b.zeros("lm_head.bias", {vocab}));
  }
};

}  // namespace

HfFamily roberta_hf_family() {
  return {"roberta",
          {{"RobertaForMaskedLM", HfHead::kMaskedLm},
           {"RobertaForSequenceClassification", HfHead::kSequenceClass},
           {"RobertaForTokenClassification", HfHead::kTokenClass}},
          [](const HfConfig& config, HfHead head) -> std::unique_ptr<HfModel> {
            return std::make_unique<HfRoberta>(config, head);
          }};
}

}  // namespace lockstep

// gpt_neox: GPT-NeoX and Pythia. Rotary positions on a part of each head, one projection whose rows are, head
// by head, query, key and value; attention and MLP beside each other or one after the other.
#include "base/error.h"
#include "model/hf/decoder.h"

namespace lockstep {
namespace {

class HfGptNeox final : public HfDecoder {
 public:
  HfGptNeox(const HfConfig& config, HfHead head) {
    layers_ = read_layers(config, "num_hidden_layers");
    dim_ = config.size("hidden_size");
    heads_ = config.size("num_attention_heads");
    if (dim_ % heads_ != 0)
      config.fail("num_attention_heads", fmt::format("it must divide hidden_size {}", dim_));
    hidden_ = config.size("intermediate_size");
    vocab = config.size("vocab_size");
    max_positions = config.size("max_position_embeddings", 2048, 1);
    epsilon_ = config.number("layer_norm_eps", 1e-5);
    activation_ = read_activation(config, "hidden_act", "gelu");
    parallel_ = config.flag("use_parallel_residual", true);
    bias_ = config.flag("attention_bias", true);
    attention_dropout = config.probability("attention_dropout", 0);
    hidden_dropout_ = config.probability("hidden_dropout", 0);
    rope_ = HfRope(config, dim_ / heads_, max_positions,
                   {.partial = 0.25, .theta_key = "rotary_emb_base", .partial_key = "rotary_pct"});
    // Older names of the two, written beside them.
    for (const auto& [old, key] :
         {std::pair{"rope_theta", "rotary_emb_base"}, {"partial_rotary_factor", "rotary_pct"}})
      if (config.has(old) && config.number(old) != config.number(key, config.number(old)))
        config.fail(old, fmt::format("it differs from {}; keep one of them", key));
    // Written by the first release, and read by none.
    config.ignore({"is_decoder", "attention_probs_dropout_prob", "hidden_dropout_prob"});
    embedding_name = "gpt_neox.embed_in";
    lm_head_name = "embed_out";
    token_head_name = "classifier";
    base_prefix = "gpt_neox.";
    read_head(config, head, false);
    classifier_dropout = config.probability("classifier_dropout", 0.1);
  }

 private:
  int64_t same_angles_up_to(int64_t length) const override { return rope_.same_up_to(length); }

  Value body(DecoderGraph& b) const override {
    Value x = b.dropout(b.embed_tokens(dim_), b.in_training(hidden_dropout_));
    for (int64_t n = 0; n < layers_; ++n)
      x = block(b, fmt::format("gpt_neox.layers.{}.", n), b.op("checkpoint", {x}));
    return b.layer_norm("gpt_neox.final_layer_norm", x, epsilon_);
  }

  Value block(DecoderGraph& b, const std::string& name, Value x) const {
    const double dropped = b.in_training(hidden_dropout_);
    const Value attended = b.dropout(
        attention(b, name + "attention.", b.layer_norm(name + "input_layernorm", x, epsilon_)), dropped);
    if (!parallel_) x = b.add(attended, x);
    const Value inner = b.layer_norm(name + "post_attention_layernorm", x, epsilon_);
    const Value out = b.dropout(mlp(b, name + "mlp.", inner), dropped);
    return parallel_ ? b.add(b.add(out, attended), x) : b.add(out, x);
  }

  Value attention(DecoderGraph& b, const std::string& name, Value x) const {
    const HfRotation rotation = rope_.at(b.settings().positions());
    const int64_t head_dim = dim_ / heads_;
    const Value qkv = b.split_heads(b.linear(name + "query_key_value", x, 3 * dim_, bias_), heads_);
    const auto part = [&](int64_t i) { return b.slice(qkv, 3, i * head_dim, (i + 1) * head_dim); };
    const Value q = b.turned(part(0), rotation), k = b.turned(part(1), rotation);
    const Value mixed = b.attend(q, k, part(2), {.heads = heads_, .kv_heads = heads_});
    return b.linear(name + "dense", mixed, dim_, bias_);
  }

  Value mlp(DecoderGraph& b, const std::string& name, Value x) const {
    const Value inner = activate(b, activation_, b.linear(name + "dense_h_to_4h", x, hidden_, true));
    return b.linear(name + "dense_4h_to_h", inner, dim_, true);
  }

  int64_t layers_ = 0, dim_ = 0, heads_ = 0, hidden_ = 0;
  double epsilon_ = 1e-5, hidden_dropout_ = 0;
  HfActivation activation_ = HfActivation::kGelu;
  HfRope rope_;
  bool parallel_ = true, bias_ = true;
};

}  // namespace

HfFamily gpt_neox_hf_family() {
  return {"gpt_neox",
          {{"GPTNeoXForCausalLM", HfHead::kCausalLm},
           {"GPTNeoXForSequenceClassification", HfHead::kSequenceClass},
           {"GPTNeoXForTokenClassification", HfHead::kTokenClass}},
          make_hf<HfGptNeox>};
}

}  // namespace lockstep

// gpt2: learned positions, layer norms before attention and MLP, one projection of queries, keys and values,
// weights stored [in, out].
#include <cmath>

#include "base/error.h"
#include "model/hf/decoder.h"

namespace lockstep {
namespace {

class HfGpt2 final : public HfDecoder {
 public:
  HfGpt2(const HfConfig& config, HfHead head) {
    layers_ = read_layers(config, "n_layer");
    dim_ = config.size("n_embd");
    heads_ = config.size("n_head");
    if (dim_ % heads_ != 0) config.fail("n_head", fmt::format("it must divide n_embd {}", dim_));
    hidden_ = config.size("n_inner", 4 * dim_, 1);
    vocab = config.size("vocab_size");
    max_positions = config.size("n_positions");
    epsilon_ = config.number("layer_norm_epsilon", 1e-5);
    activation_ = read_activation(config, "activation_function", "gelu_new");
    embedding_dropout_ = config.probability("embd_pdrop", 0.1);
    residual_dropout_ = config.probability("resid_pdrop", 0.1);
    attention_dropout = config.probability("attn_pdrop", 0.1);
    scaled_ = config.flag("scale_attn_weights", true);
    scaled_by_layer_ = config.flag("scale_attn_by_inverse_layer_idx", false);
    // n_ctx is n_positions under an older name; the other changes the order of rounding alone.
    config.ignore({"n_ctx", "reorder_and_upcast_attn"});
    embedding_name = "transformer.wte";
    token_head_name = "classifier";
    base_prefix = "transformer.";
    read_head(config, head, true);
  }

 private:
  Value body(DecoderGraph& b) const override {
    Value x = b.embed_tokens(dim_);
    x = b.add(x, b.learned_positions("transformer.wpe", dim_));
    x = b.dropout(x, b.in_training(embedding_dropout_));
    for (int64_t n = 0; n < layers_; ++n)
      x = block(b, fmt::format("transformer.h.{}.", n), n, b.op("checkpoint", {x}));
    return b.layer_norm("transformer.ln_f", x, epsilon_);
  }

  Value block(DecoderGraph& b, const std::string& name, int64_t n, Value x) const {
    // Projections back into the residual stream begin smaller with depth.
    const double residual = deviation / std::sqrt(2.0 * static_cast<double>(layers_));
    const double dropped = b.in_training(residual_dropout_);
    const Value qkv =
        b.linear_in_out(name + "attn.c_attn", b.layer_norm(name + "ln_1", x, epsilon_), 3 * dim_, deviation);
    const Value mixed = b.attend_packed(qkv, {.heads = heads_, .kv_heads = heads_, .scale = score_scale(n)});
    x = b.add(x, b.dropout(b.linear_in_out(name + "attn.c_proj", mixed, dim_, residual), dropped));
    const Value inner =
        b.linear_in_out(name + "mlp.c_fc", b.layer_norm(name + "ln_2", x, epsilon_), hidden_, deviation);
    const Value out = b.linear_in_out(name + "mlp.c_proj", activate(b, activation_, inner), dim_, residual);
    return b.add(x, b.dropout(out, dropped));
  }

  double score_scale(int64_t n) const {
    const double scale = scaled_ ? 1 / std::sqrt(static_cast<double>(dim_ / heads_)) : 1.0;
    return scaled_by_layer_ ? scale / static_cast<double>(n + 1) : scale;
  }

  int64_t layers_ = 0, dim_ = 0, heads_ = 0, hidden_ = 0;
  double epsilon_ = 1e-5;
  HfActivation activation_ = HfActivation::kGeluTanh;
  double embedding_dropout_ = 0, residual_dropout_ = 0;
  bool scaled_ = true, scaled_by_layer_ = false;
};

}  // namespace

HfFamily gpt2_hf_family() {
  return {"gpt2",
          {{"GPT2LMHeadModel", HfHead::kCausalLm},
           {"GPT2ForSequenceClassification", HfHead::kSequenceClass},
           {"GPT2ForTokenClassification", HfHead::kTokenClass}},
          make_hf<HfGpt2>};
}

}  // namespace lockstep

// phi3: LLaMA's blocks with one projection of queries, keys and values, one of gate and up, dropout on both
// branches, and a window where asked for. Its scaled positions are longrope, under three names.
#include "model/hf/gated_decoder.h"

namespace lockstep {
namespace {

class HfPhi3 final : public GatedDecoder {
 public:
  HfPhi3(const HfConfig& config, HfHead head) {
    read_sizes(config, head,
               {.max_positions = 4096,
                .epsilon = 1e-5,
                .padding_token = 32000,
                .rope = {.only_longrope = true, .original_positions = 4096}});
    residual_dropout_ = config.probability("resid_pdrop", 0);
    const int64_t window = config.integer("sliding_window", 0);
    if (config.has("sliding_window") && window < 1)
      config.fail("sliding_window", "write null, or at least 1");
    windows.assign(static_cast<size_t>(layers), window);
    config.require("attention_bias", "false", "its projections have no biases");
    // Written by releases whose own code had more of them.
    config.require("mlp_bias", "false", "its projections have no biases");
    config.require("lm_head_bias", "false", "its head has no bias");
    config.require("full_attn_mod", "1", "all layers attend alike");
    config.require("interpolate_factor", "1", "positions are not interpolated");
    // embd_pdrop is read by no release of transformers that has the family, and auto_map names code that is
    // the family's own: transformers takes its class unless it is told to trust that code.
    config.ignore({"embd_pdrop", "auto_map"});
  }

 private:
  Value block(DecoderGraph& b, const std::string& name, int64_t n, Value x) const override {
    const double dropped = b.in_training(residual_dropout_);
    const Value attended = attention(b, name + "self_attn", n, norm(b, name + "input_layernorm", x));
    x = b.add(x, b.dropout(attended, dropped));
    const Value inner = mlp(b, name + "mlp", norm(b, name + "post_attention_layernorm", x));
    return b.add(x, b.dropout(inner, dropped));
  }

  Value attention(DecoderGraph& b, const std::string& name, int64_t n, Value x) const override {
    const int64_t all = heads + 2 * kv_heads;
    const Value qkv = b.split_heads(b.linear(name + ".qkv_proj", x, all * head_dim, false), all);
    const Value turned = b.turned(qkv, rope.at(b.settings().positions()), heads + kv_heads);
    const Shape rows = b.shape(x);
    const Value mixed = b.attend_packed(b.reshape(turned, {rows[0], rows[1], all * head_dim}),
                                        {.heads = heads, .kv_heads = kv_heads, .window = window_of(n)});
    return b.linear(name + ".o_proj", mixed, dim, false);
  }

  Value mlp(DecoderGraph& b, const std::string& name, Value x) const override {
    const Value both = b.linear(name + ".gate_up_proj", x, 2 * hidden, false);
    const Value gate = activate(b, activation, b.slice(both, 2, 0, hidden));
    return b.linear(name + ".down_proj", b.mul(b.slice(both, 2, hidden, 2 * hidden), gate), dim, false);
  }

  double residual_dropout_ = 0;
};

}  // namespace

HfFamily phi3_hf_family() {
  return {"phi3",
          {{"Phi3ForCausalLM", HfHead::kCausalLm},
           {"Phi3ForSequenceClassification", HfHead::kSequenceClass},
           {"Phi3ForTokenClassification", HfHead::kTokenClass}},
          make_hf<HfPhi3>};
}

}  // namespace lockstep

// olmo2: norms behind attention and MLP instead of before them, and over whole projections of queries and
// keys.
#include "model/hf/gated_decoder.h"

namespace lockstep {
namespace {

class HfOlmo2 final : public GatedDecoder {
 public:
  HfOlmo2(const HfConfig& config, HfHead head) {
    read_sizes(config, head, {.epsilon = 1e-5, .padding_token = 1});
    qkv_bias = out_bias = config.flag("attention_bias", false);
  }

 private:
  Value block(DecoderGraph& b, const std::string& name, int64_t n, Value x) const override {
    const Value attended = attention(b, name + "self_attn", n, x);
    x = b.add(x, norm(b, name + "post_attention_layernorm", attended));
    return b.add(x, norm(b, name + "post_feedforward_layernorm", mlp(b, name + "mlp", x)));
  }

  Value attention(DecoderGraph& b, const std::string& name, int64_t n, Value x) const override {
    const HfRotation rotation = rope.at(b.settings().positions());
    const auto turned = [&](const std::string& part, int64_t count) {
      const Value projected = b.linear(name + part + "_proj", x, count * head_dim, qkv_bias);
      return b.turned(b.split_heads(norm(b, name + part + "_norm", projected), count), rotation);
    };
    const Value q = turned(".q", heads), k = turned(".k", kv_heads);
    const Value v = b.split_heads(b.linear(name + ".v_proj", x, kv_heads * head_dim, qkv_bias), kv_heads);
    return attended(b, name, n, q, k, v);
  }
};

}  // namespace

HfFamily olmo2_hf_family() {
  return {
      "olmo2",
      {{"Olmo2ForCausalLM", HfHead::kCausalLm}, {"Olmo2ForSequenceClassification", HfHead::kSequenceClass}},
      make_hf<HfOlmo2>};
}

}  // namespace lockstep

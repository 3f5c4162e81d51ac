#include "model/hf/gated_decoder.h"

#include "base/error.h"

namespace lockstep {

void GatedDecoder::read_sizes(const HfConfig& config, HfHead head, const Defaults& defaults) {
  layers = config.size("num_hidden_layers");
  dim = config.size("hidden_size");
  heads = config.size("num_attention_heads");
  kv_heads = config.size("num_key_value_heads", defaults.kv_heads.value_or(heads), 1);
  if (heads % kv_heads != 0)
    config.fail("num_key_value_heads", fmt::format("it must divide num_attention_heads {}", heads));
  const int64_t narrow = dim / heads;
  head_dim = config.size("head_dim", defaults.head_dim.value_or(narrow), 1);
  if (!config.has("head_dim") && !defaults.head_dim && dim % heads != 0)
    config.fail("num_attention_heads",
                fmt::format("it must divide hidden_size {}, or head_dim be given", dim));
  hidden = config.size("intermediate_size");
  vocab = config.size("vocab_size");
  max_positions = config.size("max_position_embeddings", defaults.max_positions, 1);
  epsilon = config.number("rms_norm_eps", defaults.epsilon);
  if (!(epsilon > 0)) config.fail("rms_norm_eps", "it must be above 0");
  activation = read_activation(config, defaults.activation_key, defaults.activation);
  attention_dropout = config.number("attention_dropout", 0);
  rope = HfRope(config, head_dim, defaults.rope, defaults.rope_kind);
  base_prefix = "model.";
  read_head(config, head, defaults.tied);
}

Value GatedDecoder::body(DecoderGraph& b) const {
  Value x = b.embed_tokens(dim);
  for (int64_t n = 0; n < layers; ++n)
    x = block(b, fmt::format("model.layers.{}.", n), n, b.op("checkpoint", {x}));
  return norm(b, "model.norm", x);
}

Value GatedDecoder::block(DecoderGraph& b, const std::string& name, int64_t n, Value x) const {
  x = b.add(x, attention(b, name + "self_attn", n, norm(b, name + "input_layernorm", x)));
  return b.add(x, mlp(b, name + "mlp", norm(b, name + "post_attention_layernorm", x)));
}

Value GatedDecoder::norm(DecoderGraph& b, const std::string& name, Value x) const {
  return b.rms_norm(name, x, epsilon);
}

Value GatedDecoder::attention(DecoderGraph& b, const std::string& name, int64_t n, Value x) const {
  const HfRotation rotation = rope.at(b.settings().positions());
  const auto projected = [&](std::string_view part, int64_t count) {
    return b.split_heads(b.linear(fmt::format("{}.{}_proj", name, part), x, count * head_dim, qkv_bias),
                         count);
  };
  const Value q = b.turned(projected("q", heads), rotation);
  const Value k = b.turned(projected("k", kv_heads), rotation);
  const Value v = projected("v", kv_heads);
  const Value mixed =
      b.attend(q, k, v, {.heads = heads, .kv_heads = kv_heads, .window = window_of(n), .scale = scale});
  return b.linear(name + ".o_proj", mixed, dim, out_bias);
}

Value GatedDecoder::mlp(DecoderGraph& b, const std::string& name, Value x) const {
  const Value gate = activate(b, activation, b.linear(name + ".gate_proj", x, hidden, mlp_bias));
  const Value up = b.linear(name + ".up_proj", x, hidden, mlp_bias);
  return b.linear(name + ".down_proj", b.mul(gate, up), dim, mlp_bias);
}

}  // namespace lockstep

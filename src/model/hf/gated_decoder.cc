#include "model/hf/gated_decoder.h"

#include <algorithm>

#include "base/error.h"

namespace lockstep {

void GatedDecoder::read_sizes(const HfConfig& config, HfHead head, const Defaults& defaults) {
  layers = read_layers(config, "num_hidden_layers");
  dim = config.size("hidden_size");
  heads = defaults.heads ? config.size("num_attention_heads", *defaults.heads, 1)
                         : config.size("num_attention_heads");
  kv_heads = config.size("num_key_value_heads", defaults.kv_heads.value_or(heads), 1);
  if (heads % kv_heads != 0)
    config.fail("num_key_value_heads", fmt::format("it must divide num_attention_heads {}", heads));
  head_dim = config.size("head_dim", defaults.head_dim.value_or(dim / heads), 1);
  if (!config.has("head_dim") && !defaults.head_dim && dim % heads != 0)
    config.fail("num_attention_heads",
                fmt::format("it must divide hidden_size {}, or head_dim be given", dim));
  hidden = config.size("intermediate_size");
  vocab = defaults.vocab ? config.size("vocab_size", *defaults.vocab, 1) : config.size("vocab_size");
  max_positions = config.size("max_position_embeddings", defaults.max_positions, 1);
  epsilon = config.number("rms_norm_eps", defaults.epsilon);
  if (!(epsilon > 0)) config.fail("rms_norm_eps", "it must be above 0");
  activation = read_activation(config, defaults.activation_key, defaults.activation);
  attention_dropout = config.probability("attention_dropout", 0);
  rope = HfRope(config, head_dim, max_positions, defaults.rope, defaults.rope_kind);
  base_prefix = prefix;
  read_head(config, head, defaults.tied, defaults.padding_token);
  embedding_padding = padding_token;
}

void GatedDecoder::read_windows(const HfConfig& config, int64_t window,
                                const std::function<bool(int64_t n)>& otherwise) {
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty() && static_cast<int64_t>(types.size()) != layers)
    config.fail("layer_types", fmt::format("it names {} layers of {}", types.size(), layers));
  for (int64_t n = 0; n < layers; ++n) {
    bool slides = otherwise(n);
    if (!types.empty()) {
      const std::string& type = types[static_cast<size_t>(n)];
      if (type != "full_attention" && type != "sliding_attention")
        config.fail("layer_types", "layers of full_attention and sliding_attention are implemented");
      slides = type == "sliding_attention";
    }
    if (slides && window < 1)
      config.fail("sliding_window", "some layer has a window; give its size, at least 1");
    windows.push_back(slides ? window : 0);
  }
}

void GatedDecoder::read_late_windows(const HfConfig& config) {
  const bool used = config.flag("use_sliding_window", false);
  const int64_t window = config.integer("sliding_window", config.contains("sliding_window") ? 0 : 4096);
  const int64_t first = config.integer("max_window_layers", 28);
  read_windows(config, used ? window : 0, [&](int64_t n) { return used && window > 0 && n >= first; });
}

int64_t GatedDecoder::same_angles_up_to(int64_t length) const {
  int64_t same = INT64_MAX;
  for (int64_t n = 0; n < layers; ++n) same = std::min(same, rope_of(n).same_up_to(length));
  return same;
}

Value GatedDecoder::body(DecoderGraph& b) const {
  Value x = b.embed_tokens(dim);
  if (embedding_scale != 1) x = b.scale(x, embedding_scale);
  for (int64_t n = 0; n < layers; ++n)
    x = block(b, fmt::format("{}layers.{}.", prefix, n), n, b.op("checkpoint", {x}));
  return norm(b, prefix + "norm", x);
}

Value GatedDecoder::block(DecoderGraph& b, const std::string& name, int64_t n, Value x) const {
  x = b.add(x, attention(b, name + "self_attn", n, norm(b, name + "input_layernorm", x)));
  return b.add(x, mlp(b, name + "mlp", norm(b, name + "post_attention_layernorm", x)));
}

Value GatedDecoder::norm(DecoderGraph& b, const std::string& name, Value x) const {
  if (!norms_add_one) return b.rms_norm(name, x, epsilon);
  const Value weight = b.shift(b.zeros(name + ".weight", {b.shape(x)[-1]}), 1);
  return b.op("rms_norm", {x, weight}, {{"epsilon", epsilon}});
}

Value GatedDecoder::attention(DecoderGraph& b, const std::string& name, int64_t n, Value x) const {
  const HfRotation rotation = rope_of(n).at(b.settings().positions());
  const auto projected = [&](const char* part, int64_t count) {
    return b.split_heads(b.linear(name + part, x, count * head_dim, qkv_bias), count);
  };
  const auto turned = [&](const char* norm_name, Value part) {
    return b.turned(head_norms ? norm(b, name + norm_name, part) : part, rotation);
  };
  const Value q = turned(".q_norm", projected(".q_proj", heads));
  const Value k = turned(".k_norm", projected(".k_proj", kv_heads));
  return attended(b, name, n, q, k, projected(".v_proj", kv_heads));
}

Value GatedDecoder::attended(DecoderGraph& b, const std::string& name, int64_t n, Value q, Value k,
                             Value v) const {
  const Value mixed = b.attend(
      q, k, v,
      {.heads = heads, .kv_heads = kv_heads, .window = window_of(n), .scale = scale, .cap = score_cap});
  return b.linear(name + ".o_proj", mixed, dim, out_bias, residual_deviation);
}

Value GatedDecoder::mlp(DecoderGraph& b, const std::string& name, Value x) const {
  const Value gate = activate(b, activation, b.linear(name + ".gate_proj", x, hidden, mlp_bias));
  const Value up = b.linear(name + ".up_proj", x, hidden, mlp_bias);
  return b.linear(name + ".down_proj", b.mul(gate, up), dim, mlp_bias, residual_deviation);
}

}  // namespace lockstep

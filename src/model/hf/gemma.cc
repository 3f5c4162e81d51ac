// gemma2 and gemma3: embeddings times the root of their width, norms before and after attention and MLP that
// multiply by 1 + weight, a scale of scores of its own, windows on some layers. gemma2 bends scores and
// logits below caps; gemma3 has norms over the heads of queries and keys, and turns sliding layers by another
// base.
#include <cmath>

#include "model/hf/gated_decoder.h"

namespace lockstep {
namespace {

class HfGemma : public GatedDecoder {
 protected:
  void read_gemma(const HfConfig& config, HfHead head, const Defaults& defaults) {
    read_sizes(config, head, defaults);
    norms_add_one = true;
    // As transformers has it for f32 weights.
    embedding_scale = static_cast<double>(static_cast<float>(std::sqrt(static_cast<double>(dim))));
    const double scalar = config.number("query_pre_attn_scalar", 256);
    if (!(scalar > 0)) config.fail("query_pre_attn_scalar", "it must be above 0");
    scale = 1 / std::sqrt(scalar);
    qkv_bias = out_bias = config.flag("attention_bias", false);
    // Some files carry this older key beside hidden_activation; it is not read there either.
    config.ignore({"hidden_act"});
  }

  // A cap that null switches off.
  static double read_cap(const HfConfig& config, std::string_view key, double otherwise) {
    const double cap = config.number(key, config.contains(key) ? 0 : otherwise);
    if (!(cap >= 0)) config.fail(key, "write null, or a number above 0");
    return cap;
  }

  Value block(DecoderGraph& b, const std::string& name, int64_t n, Value x) const override {
    const Value attended = attention(b, name + "self_attn", n, norm(b, name + "input_layernorm", x));
    x = b.add(x, norm(b, name + "post_attention_layernorm", attended));
    const Value inner = mlp(b, name + "mlp", norm(b, name + "pre_feedforward_layernorm", x));
    return b.add(x, norm(b, name + "post_feedforward_layernorm", inner));
  }
};

class HfGemma2 final : public HfGemma {
 public:
  HfGemma2(const HfConfig& config, HfHead head) {
    read_gemma(config, head,
               {.kv_heads = 4,
                .head_dim = 256,
                .max_positions = 8192,
                .tied = true,
                .padding_token = 0,
                .activation_key = "hidden_activation",
                .activation = "gelu_pytorch_tanh"});
    score_cap = read_cap(config, "attn_logit_softcapping", 50);
    logit_cap = read_cap(config, "final_logit_softcapping", 30);
    read_windows(config, config.integer("sliding_window", config.contains("sliding_window") ? 0 : 4096),
                 [](int64_t n) { return n % 2 == 0; });
    config.ignore({"sliding_window_size", "cache_implementation"});
  }
};

class HfGemma3 : public HfGemma {
 public:
  HfGemma3(const HfConfig& config, HfHead head, std::string_view names = "model.") {
    prefix = names;
    embedding_name = prefix + "embed_tokens";
    lm_head_name = prefix.substr(0, prefix.size() - std::string_view("model.").size()) + "lm_head";
    read_gemma(config, head,
               // Folders with a tower for images leave out what is as here.
               {.heads = 8,
                .vocab = 262208,
                .kv_heads = 4,
                .head_dim = 256,
                .max_positions = 131072,
                .tied = true,
                .padding_token = 0,
                .activation_key = "hidden_activation",
                .activation = "gelu_pytorch_tanh",
                .rope = {.theta = 1e6},
                .rope_kind = "full_attention"});
    local_rope_ = HfRope(config, head_dim, max_positions,
                         {.theta_key = "rope_local_base_freq", .ignores_scaling = true}, "sliding_attention");
    head_norms = true;
    logit_cap = read_cap(config, "final_logit_softcapping", 0);
    // In the files, but transformers never applies it.
    config.ignore({"attn_logit_softcapping"});
    const int64_t pattern =
        config.size("sliding_window_pattern", config.integer("_sliding_window_pattern", 6), 1);
    read_windows(config, config.integer("sliding_window", config.contains("sliding_window") ? 0 : 4096),
                 [&](int64_t n) { return (n + 1) % pattern != 0; });
  }

 private:
  const HfRope& rope_of(int64_t n) const override { return window_of(n) > 0 ? local_rope_ : rope; }
  HfRope local_rope_;
};

// The text part of a folder of gemma3, which has a tower for images beside it.
class HfGemma3WithImages final : public HfGemma3 {
 public:
  HfGemma3WithImages(const HfConfig& config, HfHead head)
      : HfGemma3(text_of(config), head, "language_model.model.") {
    config.ignore({"vision_config", "mm_tokens_per_image", "image_token_index", "image_token_id",
                   "boi_token_index", "eoi_token_index", "boi_token_id", "eoi_token_id", "initializer_range",
                   "tie_word_embeddings"});
    ignored_prefixes = {"vision_tower.", "multi_modal_projector."};
  }

 private:
  static HfConfig text_of(const HfConfig& config) {
    const std::optional<HfConfig> text = config.object("text_config");
    if (!text) config.fail("text_config", "the folder's text model is described there");
    return *text;
  }
};

}  // namespace

HfFamily gemma2_hf_family() {
  return {"gemma2",
          {{"Gemma2ForCausalLM", HfHead::kCausalLm},
           {"Gemma2ForSequenceClassification", HfHead::kSequenceClass},
           {"Gemma2ForTokenClassification", HfHead::kTokenClass}},
          make_hf<HfGemma2>};
}

HfFamily gemma3_hf_family() {
  return {"gemma3", {{"Gemma3ForConditionalGeneration", HfHead::kCausalLm}}, make_hf<HfGemma3WithImages>};
}

HfFamily gemma3_text_hf_family() {
  return {"gemma3_text",
          {{"Gemma3ForCausalLM", HfHead::kCausalLm},
           {"Gemma3TextForSequenceClassification", HfHead::kSequenceClass}},
          make_hf<HfGemma3>};
}

}  // namespace lockstep

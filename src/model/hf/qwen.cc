// qwen2: LLaMA's blocks with biases on queries, keys and values. qwen3: instead with norms over the heads of
// queries and keys. Both may have a window on their last layers.
#include "model/hf/gated_decoder.h"

namespace lockstep {
namespace {

class HfQwen2 final : public GatedDecoder {
 public:
  HfQwen2(const HfConfig& config, HfHead head) {
    read_sizes(config, head, {.kv_heads = 32, .max_positions = 32768});
    qkv_bias = true;
    read_late_windows(config);
  }
};

class HfQwen3 final : public GatedDecoder {
 public:
  HfQwen3(const HfConfig& config, HfHead head) {
    read_sizes(config, head, {.kv_heads = 32, .head_dim = 128, .max_positions = 32768});
    qkv_bias = out_bias = config.flag("attention_bias", false);
    head_norms = true;
    read_late_windows(config);
  }
};

}  // namespace

HfFamily qwen2_hf_family() {
  return {"qwen2",
          {{"Qwen2ForCausalLM", HfHead::kCausalLm},
           {"Qwen2ForSequenceClassification", HfHead::kSequenceClass},
           {"Qwen2ForTokenClassification", HfHead::kTokenClass}},
          make_hf<HfQwen2>};
}

HfFamily qwen3_hf_family() {
  return {"qwen3",
          {{"Qwen3ForCausalLM", HfHead::kCausalLm},
           {"Qwen3ForSequenceClassification", HfHead::kSequenceClass},
           {"Qwen3ForTokenClassification", HfHead::kTokenClass}},
          make_hf<HfQwen3>};
}

}  // namespace lockstep

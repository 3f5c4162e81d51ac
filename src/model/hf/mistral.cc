// mistral: LLaMA's blocks without biases, and a window on every layer.
#include "model/hf/gated_decoder.h"

namespace lockstep {
namespace {

class HfMistral final : public GatedDecoder {
 public:
  HfMistral(const HfConfig& config, HfHead head) {
    read_sizes(config, head, {.kv_heads = 8, .max_positions = 131072});
    // null: none; absent: that of the first release.
    const int64_t window = config.integer("sliding_window", config.contains("sliding_window") ? 0 : 4096);
    if (config.has("sliding_window") && window < 1)
      config.fail("sliding_window", "write null, or at least 1");
    config.require("attention_bias", "false", "its projections have no biases");
    windows.assign(static_cast<size_t>(layers), window);
  }
};

}  // namespace

HfFamily mistral_hf_family() {
  return {"mistral",
          {{"MistralForCausalLM", HfHead::kCausalLm},
           {"MistralForSequenceClassification", HfHead::kSequenceClass},
           {"MistralForTokenClassification", HfHead::kTokenClass}},
          make_hf<HfMistral>};
}

}  // namespace lockstep

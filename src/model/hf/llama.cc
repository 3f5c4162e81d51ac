// llama: LLaMA 1 to 3.x and what was trained in its shape.
#include "model/hf/gated_decoder.h"

namespace lockstep {
namespace {

class HfLlama final : public GatedDecoder {
 public:
  HfLlama(const HfConfig& config, HfHead head) {
    read_sizes(config, head, {});
    qkv_bias = out_bias = config.flag("attention_bias", false);
    mlp_bias = config.flag("mlp_bias", false);
  }
};

}  // namespace

HfFamily llama_hf_family() {
  return {"llama",
          {{"LlamaForCausalLM", HfHead::kCausalLm},
           {"LlamaForSequenceClassification", HfHead::kSequenceClass},
           {"LlamaForTokenClassification", HfHead::kTokenClass}},
          make_hf<HfLlama>};
}

}  // namespace lockstep

#include "fuzz/hf_config.h"

#include "base/error.h"
#include "model/hf/family.h"

namespace lockstep::testing {
namespace {

// Config files announce sizes; a model of billions is not built to see whether it could be.
constexpr int64_t kMostLayers = 4;
constexpr int64_t kWidest = 1 << 16;

bool is_small(const HfConfig& config) {
  for (const char* key : {"num_hidden_layers", "n_layer", "n_layers"})
    if (config.has(key) && config.integer(key) > kMostLayers) return false;
  for (const char* key : {"hidden_size", "vocab_size", "intermediate_size", "max_position_embeddings",
                          "n_embd", "n_positions", "n_inner", "dim", "hidden_dim", "head_dim",
                          "num_attention_heads", "num_key_value_heads", "n_head", "n_heads", "image_size"})
    if (config.has(key) && config.integer(key) > kWidest) return false;
  return true;
}

}  // namespace

bool check_hf_config(std::string_view text) {
  std::unique_ptr<HfModel> model;
  bool built = true;
  try {
    const HfConfig config = HfConfig::parse(text, "config.json");
    model = make_hf_model(config);
    if (is_small(config)) built = !model->build({}).params.empty();
  } catch (const UserError&) {
    return false;
  }
  LOCKSTEP_CHECK(model->vocab >= 0 && model->vocab <= INT32_MAX, "a vocabulary of {}", model->vocab);
  LOCKSTEP_CHECK(built, "a model without parameters");
  LOCKSTEP_CHECK(model->classes >= 0, "{} classes", model->classes);
  LOCKSTEP_CHECK(
      !model->padding_token || (*model->padding_token >= 0 && *model->padding_token < model->vocab),
      "padding outside of the vocabulary");
  return true;
}

}  // namespace lockstep::testing

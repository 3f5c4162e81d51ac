// Decoders: which configs are refused and how, where dropout stands, how weights begin. What they compute is
// compared with transformers in tests/golden/hf_decoder_golden_test.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "graph/op_def.h"
#include "model/hf/family.h"

namespace lockstep {
namespace {

std::unique_ptr<HfModel> made(const std::string& keys) {
  return make_hf_model(HfConfig::parse("{" + keys + "}", "config.json"));
}

std::string refusal(const std::string& keys) {
  try {
    made(keys);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_refusal(const std::string& keys, const std::string& part) {
  EXPECT_NE(refusal(keys).find(part), std::string::npos) << keys << "\n" << refusal(keys);
}

const std::string kSizes = R"("vocab_size": 40, "hidden_size": 8, "num_hidden_layers": 2,
  "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 12, "max_position_embeddings": 16)";
const std::string kLlama = R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], )" + kSizes;
const std::string kGpt2 = R"("model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 40,
  "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 16)";

TEST(HfDecoderConfig, UnknownFamiliesAndClassesAreRefusedByName) {
  expect_refusal(
      R"("model_type": "falcon")",
      "config.json: model_type is \"falcon\": there is no such family here; known are llama, mistral,");
  expect_refusal("", "config.json has no model_type");
  expect_refusal(R"("model_type": "llama", "architectures": ["LlamaForQuestionAnswering"])",
                 "this class is not implemented; of llama there are LlamaForCausalLM, "
                 "LlamaForSequenceClassification, LlamaForTokenClassification");
  expect_refusal(R"("model_type": "llama", "architectures": [])", "name the one class of the model");
}

TEST(HfDecoderConfig, KeysThatChangeTheMathematicsAreRefused) {
  EXPECT_EQ(refusal(kLlama), "accepted");
  expect_refusal(kLlama + R"(, "logit_scale": 0.5)",
                 "config.json: logit_scale is 0.5: this key is not known for the family, and it may change");
  expect_refusal(kLlama + R"(, "is_causal": false)", "a decoder that looks ahead is not implemented");
  expect_refusal(kLlama + R"(, "quantization_config": {"bits": 4})", "quantized weights are not read");
  expect_refusal(kLlama + R"(, "auto_map": {"AutoModel": "code.py"})", "code of its own, which is never run");
  expect_refusal(kLlama + R"(, "hidden_act": "gelu_10")",
                 "this activation is not implemented; known are silu");
  expect_refusal(kLlama + R"(, "sliding_window": 4)", "sliding_window is 4: this key is not known");
  expect_refusal(
      R"("model_type": "mistral", "architectures": ["MistralForCausalLM"], "attention_bias": true, )" +
          kSizes,
      "its projections have no biases; only false is implemented");
  expect_refusal(
      R"("model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "layer_types": ["linear"], )" + kSizes,
      "it names 1 layers of 2");
  expect_refusal(kGpt2 + R"(, "add_cross_attention": true)",
                 "attention to another sequence is not implemented");
}

TEST(HfDecoderConfig, KeysThatChangeNothingAreNot) {
  EXPECT_EQ(
      refusal(kLlama + R"(, "use_cache": true, "pretraining_tp": 2, "is_causal": true, "temperature": 0.7,
                             "quantization_config": null, "unknown": null, "dtype": "bfloat16")"),
      "accepted");
  EXPECT_EQ(refusal(kGpt2 + R"(, "summary_type": "cls_index", "n_ctx": 16)"), "accepted");
}

// As published folders have them, with fewer layers.
TEST(HfDecoderConfig, PublishedConfigsAreAccepted) {
  const auto gemma = made(R"("architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999,
    "eoi_token_index": 256000, "eos_token_id": [1, 106], "image_token_index": 262144, "initializer_range": 0.02,
    "mm_tokens_per_image": 256, "model_type": "gemma3", "text_config": {"hidden_size": 2560,
    "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 6,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}, "torch_dtype": "bfloat16",
    "transformers_version": "4.50.0.dev0", "vision_config": {"hidden_size": 1152})");
  EXPECT_EQ(gemma->vocab, 262208);
  EXPECT_EQ(gemma->max_positions, 131072);
  EXPECT_EQ(
      refusal(R"("architectures": ["Phi3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "bos_token_id": 199999, "embd_pdrop": 0.0,
    "eos_token_id": 199999, "full_attn_mod": 1, "hidden_act": "silu", "hidden_size": 16, "initializer_range": 0.02,
    "intermediate_size": 24, "interpolate_factor": 1, "lm_head_bias": false, "max_position_embeddings": 131072,
    "mlp_bias": false, "model_type": "phi3", "num_attention_heads": 2, "num_hidden_layers": 2,
    "num_key_value_heads": 1, "original_max_position_embeddings": 4096, "pad_token_id": 199999,
    "partial_rotary_factor": 0.75, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": {
    "long_factor": [1, 1.1, 1.2], "short_factor": [1, 1, 1], "type": "longrope"}, "rope_theta": 10000.0,
    "sliding_window": 262144, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true,
    "vocab_size": 200064)"),
      "accepted");
  EXPECT_EQ(refusal(kLlama + R"(, "is_llama_config": true, "rope_interleaved": false, "pad_token_id": 2,
    "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}, "attention_bias": false)"),
            "accepted");
}

TEST(HfDecoderConfig, ScalingsAreReadWholeOrRefused) {
  const auto scaled = [](const std::string& keys) { return kLlama + R"(, "rope_scaling": {)" + keys + "}"; };
  EXPECT_EQ(refusal(scaled(R"("type": "linear", "factor": 2)")), "accepted");
  expect_refusal(scaled(R"("rope_type": "proportional", "factor": 2)"),
                 "config.json: rope_scaling.rope_type is \"proportional\": this scaling is not implemented");
  expect_refusal(scaled(R"("type": "linear")"),
                 "rope_scaling.factor is absent: the scaling needs this number");
  expect_refusal(scaled(R"("type": "linear", "factor": 2, "beta": 1)"), "rope_scaling.beta is 1: this key");
  expect_refusal(scaled(R"("type": "longrope", "short_factor": [1], "long_factor": [1, 2])"),
                 "it has 1 numbers, one for each of 2 pairs is needed");
  expect_refusal(scaled(R"("type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1)"),
                 "it must be above low_freq_factor");
}

TEST(HfDecoderConfig, SizesThatDoNotHoldAreRefused) {
  expect_refusal(kLlama + R"(, "head_dim": 3)", "rotary positions turn pairs");
  expect_refusal(
      R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 20000)",
      "it must be at most 10000");
  expect_refusal(
      R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": "two")",
      "write a whole number");
  expect_refusal(R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2)",
                 "hidden_size is absent: the model needs this number");
  EXPECT_THROW(made(kGpt2)->build({.batch = 1, .seq = 17}), UserError);
}

TEST(HfDecoderConfig, TextThatIsNoConfigIsRefused) {
  const auto refused = [](const std::string& text, const std::string& part) {
    try {
      HfConfig::parse(text, "config.json");
      FAIL() << text;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused("[1]", "is not a JSON object");
  refused("{", "is not JSON");
  refused(R"({"a": 1, "a": 2})", "has the key a twice");
}

// The probabilities of dropouts in the order of the graph.
std::vector<double> dropouts(const HfModel& model, const HfGraph& graph) {
  std::vector<double> found;
  const Model built = model.build(graph);
  for (const Node& node : built.graph.nodes()) {
    if (node.op->name == "dropout") found.push_back(node.attributes.number("p"));
    if (node.op->name.starts_with("attention") && node.attributes.number("dropout") > 0)
      found.push_back(node.attributes.number("dropout"));
  }
  return found;
}

TEST(HfDecoders, DropoutStandsWhereTransformersHasIt) {
  using Probabilities = std::vector<double>;
  const auto gpt2 = made(kGpt2 + R"(, "embd_pdrop": 0.5, "attn_pdrop": 0.25, "resid_pdrop": 0.125)");
  EXPECT_EQ(dropouts(*gpt2, {.batch = 2, .seq = 6}),
            (Probabilities{0.5, 0.25, 0.125, 0.125, 0.25, 0.125, 0.125}));
  EXPECT_EQ(dropouts(*gpt2, {.batch = 2, .seq = 6, .training = false}), Probabilities{});
  EXPECT_EQ(dropouts(*gpt2, {.batch = 2, .seq = 6, .training = false, .cache = 4}), Probabilities{});
  EXPECT_EQ(dropouts(*made(kLlama + R"(, "attention_dropout": 0.25)"), {.batch = 2, .seq = 6}),
            (Probabilities{0.25, 0.25}));
}

const ParamInit& init_of(const Model& model, const std::string& name) {
  const auto found = std::find_if(model.params.begin(), model.params.end(),
                                  [&](const ParamInit& init) { return init.name == name; });
  if (found == model.params.end()) throw UserError("no {}", name);
  return *found;
}

TEST(HfDecoders, WeightsBeginAsTransformersHasThem) {
  const Model llama =
      made(kLlama + R"(, "pad_token_id": 3, "initializer_range": 0.5)")->build({.batch = 1, .seq = 4});
  std::vector<float> table(40 * 8);
  init_param(init_of(llama, "model.embed_tokens.weight"), 1, 0, table);
  EXPECT_TRUE(std::all_of(table.begin() + 24, table.begin() + 32, [](float x) { return x == 0; }));
  EXPECT_NE(table[23], 0);
  EXPECT_NE(table[32], 0);
  EXPECT_EQ(init_of(llama, "model.layers.1.mlp.down_proj.weight").b, 0.5);
  EXPECT_EQ(init_of(llama, "model.norm.weight").a, 1);
  EXPECT_FALSE(init_of(llama, "model.norm.weight").decay);
  const Model gpt2 = made(kGpt2)->build({.batch = 1, .seq = 4});
  EXPECT_EQ(init_of(gpt2, "transformer.h.0.attn.c_proj.weight").b, 0.02 / 2);
  EXPECT_EQ(init_of(gpt2, "transformer.h.0.attn.c_attn.weight").b, 0.02);
  const Model gemma =
      made(R"("model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "head_dim": 4, )" + kSizes)
          ->build({.batch = 1, .seq = 4});
  EXPECT_EQ(init_of(gemma, "model.norm.weight").a, 0);
}

TEST(HfDecoders, TheSameBodyTakesAnotherHead) {
  const HfConfig config =
      HfConfig::parse("{" + kLlama + R"(, "id2label": {"0": "a", "1": "b", "2": "c"}})", "config.json");
  const auto model = make_hf_model(config, HfHead::kSequenceClass);
  EXPECT_EQ(model->classes, 3);
  const Model built = model->build({.batch = 2, .seq = 5});
  EXPECT_EQ(built.params.back().name, "score.weight");
  EXPECT_EQ(built.task, Task::kClassify);
  EXPECT_THROW(make_hf_model(HfConfig::parse("{" + kLlama + "}", "config.json"), HfHead::kMaskedLm),
               UserError);
}

}  // namespace
}  // namespace lockstep

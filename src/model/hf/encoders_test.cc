// Encoders: which configs are refused and how, and where dropout stands.
#include <gtest/gtest.h>

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

const std::string kBert = R"("model_type": "bert", "architectures": ["BertForSequenceClassification"],
  "vocab_size": 40, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
  "intermediate_size": 12, "max_position_embeddings": 16)";
const std::string kMaskedRoberta = R"("model_type": "roberta", "architectures": ["RobertaForMaskedLM"],
  "vocab_size": 40, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
  "intermediate_size": 12, "max_position_embeddings": 16)";
const std::string kDistil =
    R"("model_type": "distilbert", "architectures": ["DistilBertForTokenClassification"],
  "vocab_size": 40, "dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 12, "max_position_embeddings": 16)";
const std::string kVit = R"("model_type": "vit", "architectures": ["ViTForImageClassification"],
  "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12,
  "image_size": 8, "patch_size": 4)";

// The probabilities of dropouts in the order of the graph.
std::vector<double> dropouts(const HfModel& model, bool training) {
  std::vector<double> found;
  const Model built = model.build({.batch = 2, .seq = 6, .training = training});
  for (const Node& node : built.graph.nodes()) {
    if (node.op->name == "dropout") found.push_back(node.attributes.number("p"));
    if (node.op->name == "attention" && node.attributes.number("dropout") > 0)
      found.push_back(node.attributes.number("dropout"));
  }
  return found;
}

TEST(HfEncoders, DropoutStandsWhereTransformersHasIt) {
  using Probabilities = std::vector<double>;
  const std::string own = R"(, "hidden_dropout_prob": 0.25, "attention_probs_dropout_prob": 0.125)";
  // Embeddings; weights, output and MLP of each layer; the head.
  EXPECT_EQ(dropouts(*made(kBert + own + R"(, "classifier_dropout": 0.5)"), true),
            (Probabilities{0.25, 0.125, 0.25, 0.25, 0.125, 0.25, 0.25, 0.5}));
  // Without a number of its own the head has that of the layers; without any, all have 0.1.
  EXPECT_EQ(dropouts(*made(kBert + own), true).back(), 0.25);
  EXPECT_EQ(dropouts(*made(kBert), true), Probabilities(8, 0.1));
  EXPECT_EQ(dropouts(*made(kMaskedRoberta + own), true),
            (Probabilities{0.25, 0.125, 0.25, 0.25, 0.125, 0.25, 0.25}));
  // Nothing behind attention.
  EXPECT_EQ(dropouts(*made(kDistil + R"(, "dropout": 0.25, "attention_dropout": 0.125)"), true),
            (Probabilities{0.25, 0.125, 0.25, 0.125, 0.25, 0.25}));
  EXPECT_EQ(dropouts(*made(kVit + own), true), (Probabilities{0.25, 0.125, 0.25, 0.25, 0.125, 0.25, 0.25}));
  EXPECT_EQ(dropouts(*made(kVit), true), Probabilities());
  for (const std::string& keys : {kBert, kMaskedRoberta, kDistil, kVit + own})
    EXPECT_EQ(dropouts(*made(keys), false), Probabilities()) << keys;
}

TEST(HfEncoders, DistilBertsClassifierHasADropoutOfItsOwn) {
  std::string keys = kDistil;
  keys.replace(keys.find("ForTokenClassification"), 22, "ForSequenceClassification");
  EXPECT_EQ(dropouts(*made(keys), true).back(), 0.2);
  EXPECT_EQ(dropouts(*made(keys + R"(, "seq_classif_dropout": 0.375)"), true).back(), 0.375);
}

TEST(HfEncoders, WhatWouldBeAnotherModelIsRefused) {
  EXPECT_EQ(refusal(kBert), "accepted");
  EXPECT_EQ(
      refusal(kBert + R"(, "position_embedding_type": "relative_key")"),
      "config.json: position_embedding_type is \"relative_key\": relative positions are not implemented; "
      "only \"absolute\" is implemented");
  EXPECT_EQ(refusal(kBert + R"(, "hidden_act": "gelu_10")").find("config.json: hidden_act is \"gelu_10\""),
            0u);
  EXPECT_EQ(refusal(kBert + R"(, "problem_type": "multi_label_classification")"),
            "config.json: problem_type is \"multi_label_classification\": the loss is that of one class of "
            "several; only \"single_label_classification\" is implemented");
  EXPECT_EQ(
      refusal(kBert + R"(, "id2label": {"0": "LABEL_0"})"),
      "config.json: id2label is {\"0\":\"LABEL_0\"}: one label means regression, which is not implemented");
  EXPECT_NE(refusal(kBert + R"(, "is_decoder": true)"), "accepted");
  EXPECT_NE(refusal(kBert + R"(, "my_own_scale": 2)"), "accepted");
  EXPECT_NE(refusal(kBert + R"(, "pad_token_id": 40)"), "accepted");
  EXPECT_NE(refusal(kBert + R"(, "hidden_dropout_prob": 1.0)"), "accepted");
  EXPECT_EQ(refusal(kMaskedRoberta + R"(, "tie_word_embeddings": false)"),
            "config.json: tie_word_embeddings is false: a head with a table of its own is not "
            "implemented; only true is implemented");
  EXPECT_EQ(refusal(kMaskedRoberta + R"(, "pad_token_id": 15)"),
            "config.json: max_position_embeddings is 16: positions begin after the padding token, 15");
  EXPECT_NE(refusal(kDistil + R"(, "sinusoidal_pos_embds": true)"), "accepted");
  EXPECT_EQ(refusal(kVit + R"(, "num_channels": 4, "qkv_bias": false)"), "accepted");
  std::string odd = kVit;
  odd.replace(odd.find(": 4"), 3, ": 3");
  EXPECT_EQ(refusal(odd), "config.json: patch_size is 3: it does not divide image_size 8");
}

// RoBERTa's first positions stand for the padding and what is before it.
TEST(HfEncoders, RowsAreAsLongAsThereArePositions) {
  EXPECT_EQ(made(kBert)->max_positions, 16);
  const auto roberta = made(kMaskedRoberta);
  EXPECT_EQ(roberta->max_positions, 14);
  EXPECT_NO_THROW(roberta->build({.batch = 1, .seq = 14}));
  EXPECT_THROW(roberta->build({.batch = 1, .seq = 15}), UserError);
}

TEST(HfEncoders, ABodyTakesAnotherHead) {
  const HfConfig config = HfConfig::parse("{" + kMaskedRoberta + "}", "config.json");
  const auto model = make_hf_model(config, HfHead::kSequenceClass);
  EXPECT_EQ(model->classes, 2);
  const Model built = model->build({.batch = 2, .seq = 6});
  EXPECT_TRUE(built.graph.find("classifier.out_proj.weight").valid());
  EXPECT_EQ(built.task, Task::kClassify);
}

// The keys that folders of published models have.
TEST(HfEncoders, PublishedConfigsAreTaken) {
  const auto bert = made(R"("architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi", "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 12, "num_hidden_layers": 12,
    "pad_token_id": 0, "pooler_fc_size": 768, "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128, "pooler_type": "first_token_transform", "position_embedding_type": "absolute",
    "transformers_version": "4.6.0.dev0", "type_vocab_size": 2, "use_cache": true, "vocab_size": 30522)");
  EXPECT_EQ(parameter_count(bert->build({.batch = 1, .seq = 8})), 109514298);
  const auto roberta = made(R"("architectures": ["RobertaForMaskedLM"], "attention_probs_dropout_prob": 0.1,
    "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
    "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-05,
    "max_position_embeddings": 514, "model_type": "roberta", "num_attention_heads": 12,
    "num_hidden_layers": 12, "pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 50265)");
  EXPECT_EQ(roberta->max_positions, 512);
  EXPECT_EQ(parameter_count(roberta->build({.batch = 1, .seq = 8})), 124697433);
  const auto distil = made(R"("activation": "gelu", "architectures": ["DistilBertForMaskedLM"],
    "attention_dropout": 0.1, "dim": 768, "dropout": 0.1, "hidden_dim": 3072, "initializer_range": 0.02,
    "max_position_embeddings": 512, "model_type": "distilbert", "n_heads": 12, "n_layers": 6, "pad_token_id": 0,
    "qa_dropout": 0.1, "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": false, "tie_weights_": true,
    "transformers_version": "4.10.0.dev0", "vocab_size": 30522)");
  EXPECT_EQ(parameter_count(distil->build({.batch = 1, .seq = 8})), 66985530);
  const auto vit =
      made(R"("architectures": ["ViTForImageClassification"], "attention_probs_dropout_prob": 0.0,
    "encoder_stride": 16, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "hidden_size": 768,
    "id2label": {"0": "cat", "1": "dog"}, "image_size": 224, "initializer_range": 0.02,
    "intermediate_size": 3072, "label2id": {"cat": 0, "dog": 1}, "layer_norm_eps": 1e-12, "model_type": "vit",
    "num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": true,
    "transformers_version": "4.13.0.dev0")");
  EXPECT_EQ(parameter_count(vit->build({.batch = 1})), 85800194);
}

}  // namespace
}  // namespace lockstep

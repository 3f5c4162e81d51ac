#include "model/peft_config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/hf/adapter_names.h"

namespace lockstep {
namespace {

TEST(PeftConfig, DefaultsArePefts) {
  const PeftConfig config = parse_peft_config(R"({"peft_type": "LORA", "target_modules": ["q", "v"]})", "a");
  EXPECT_EQ(config.lora.rank, 8);
  EXPECT_EQ(config.lora.alpha, 8);
  EXPECT_EQ(config.lora.dropout, 0);
  EXPECT_EQ(config.lora.modules, (std::vector<std::string>{"q", "v"}));
}

TEST(PeftConfig, ReadsWhatItWrites) {
  PeftConfig config;
  config.lora = {.rank = 4, .alpha = 12, .dropout = 0.1, .rank_stabilised = true, .modules = {"c_attn"}};
  config.modules_to_save = {"score"};
  config.base_model = "gpt2";
  const PeftConfig again = parse_peft_config(peft_config_text(config, true, "SEQ_CLS"), "a");
  EXPECT_EQ(again.lora.rank, 4);
  EXPECT_EQ(again.lora.alpha, 12);
  EXPECT_EQ(again.lora.dropout, 0.1);
  EXPECT_TRUE(again.lora.rank_stabilised);
  EXPECT_EQ(again.lora.modules, config.lora.modules);
  EXPECT_EQ(again.modules_to_save, config.modules_to_save);
  EXPECT_EQ(again.base_model, "gpt2");
}

TEST(PeftConfig, WhatItWouldComputeDifferentlyIsRefusedByItsKey) {
  const auto refused = [](const std::string& more) -> std::string {
    try {
      parse_peft_config(R"({"peft_type": "LORA", "target_modules": ["q"], )" + more + "}",
                        "adapter_config.json");
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  for (const auto& [text, key] : std::vector<std::pair<const char*, const char*>>{
           {R"("peft_type": "IA3")", "peft_type"},
           {R"("use_dora": true)", "use_dora"},
           {R"("rank_pattern": {"q": 4})", "rank_pattern"},
           {R"("alpha_pattern": {"q": 4})", "alpha_pattern"},
           {R"("bias": "all")", "bias"},
           {R"("r": 0)", "r is 0"},
           {R"("r": 1.5)", "r is 1.5"},
           {R"("target_modules": [])", "target_modules"},
           {R"("lora_alpha": "8")", "lora_alpha"},
           {R"("layers_to_transform": [0])", "layers_to_transform"}})
    EXPECT_NE(refused(text).find(key), std::string::npos) << text << ": " << refused(text);
  EXPECT_EQ(refused(R"("eva_config": null, "rank_pattern": {}, "lora_bias": false)"), "accepted");
  EXPECT_THROW(parse_peft_config("[]", "a"), UserError);
  EXPECT_THROW(parse_peft_config("{", "a"), UserError);
}

TEST(PeftConfig, AnExpressionNamesNoModules) {
  EXPECT_TRUE(
      parse_peft_config(R"({"peft_type": "LORA", "target_modules": ".*q"})", "a").lora.modules.empty());
}

TEST(AdapterNames, OfVitAreThoseInMemory) {
  EXPECT_EQ(adapter_name("vit", "vit.encoder.layer.3.attention.attention.query"),
            "vit.layers.3.attention.q_proj");
  EXPECT_EQ(adapter_name("vit", "vit.encoder.layer.3.attention.output.dense"),
            "vit.layers.3.attention.o_proj");
  EXPECT_EQ(adapter_name("vit", "vit.encoder.layer.3.output.dense"), "vit.layers.3.mlp.fc2");
  EXPECT_EQ(adapter_name("bert", "bert.encoder.layer.3.output.dense"), "bert.encoder.layer.3.output.dense");
}

}  // namespace
}  // namespace lockstep

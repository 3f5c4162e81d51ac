#include "model/hf/generation_config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

GenerationConfig parsed(const char* text) { return parse_generation_config(text, "g.json"); }

std::string refusal(const char* text) {
  try {
    parsed(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(GenerationConfig, OneEndTokenOrSeveral) {
  EXPECT_EQ(parsed(R"({"eos_token_id": 2})").end_tokens, std::vector<int32_t>{2});
  EXPECT_EQ(parsed(R"({"eos_token_id": [1, 106]})").end_tokens, (std::vector<int32_t>{1, 106}));
  EXPECT_TRUE(parsed(R"({"eos_token_id": null})").end_tokens.empty());
}

TEST(GenerationConfig, HowTokensAreChosen) {
  const GenerationConfig config = parsed(
      R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.05})");
  EXPECT_EQ(config.temperature, 0.6);
  EXPECT_EQ(config.top_k, 20);
  EXPECT_EQ(config.top_p, 0.95);
  EXPECT_EQ(config.repetition_penalty, 1.05);
  EXPECT_FALSE(parsed(R"({"temperature": 0.0})").temperature);
}

TEST(GenerationConfig, RefusesWhatCannotBeMeantAndWhatIsNotThere) {
  EXPECT_EQ(refusal(R"({"top_p": 1.5})"), "g.json: top_p is 1.5: a number that cannot be meant");
  EXPECT_EQ(refusal(R"({"eos_token_id": -1})"),
            "g.json: eos_token_id is -1: a token, or a list of tokens, is expected");
  EXPECT_EQ(refusal("[]"), "g.json: it is no JSON object");
  EXPECT_NE(refusal(R"({"num_beams": 4})").find("num_beams is 4"), std::string::npos);
  EXPECT_EQ(refusal(R"({"num_beams": 1, "no_repeat_ngram_size": 0})"), "");
}

TEST(GenerationConfig, ConfigNamesTheEndWhereNothingElseDoes) {
  const TestFolder folder;
  EXPECT_TRUE(read_generation_config(folder.path()).end_tokens.empty());
  folder.write("config.json", R"({"eos_token_id": 7})");
  EXPECT_EQ(read_generation_config(folder.path()).end_tokens, std::vector<int32_t>{7});
  folder.write("generation_config.json", R"({"eos_token_id": [8, 9]})");
  EXPECT_EQ(read_generation_config(folder.path()).end_tokens, (std::vector<int32_t>{8, 9}));
}

}  // namespace
}  // namespace lockstep

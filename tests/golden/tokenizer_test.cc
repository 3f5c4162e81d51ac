// Ids that the reference libraries give (make_tokenizer_golden.py), and what they decode to.
#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"

namespace lockstep {
namespace {

using nlohmann::json;

const std::string kFolder = std::string(LOCKSTEP_GOLDEN) + "/tokenizer";

std::vector<json> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  return lines;
}

std::string text_of(const json& line) {
  if (line.is_string()) return line.get<std::string>();
  const auto hex = line["hex"].get<std::string>();
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::vector<std::string> golden_texts() {
  std::vector<std::string> texts;
  for (const json& line : lines_of(kFolder + "/texts.jsonl")) texts.push_back(text_of(line));
  return texts;
}

std::vector<std::string> files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string extension = entry.path().extension();
    if (extension == ".json" || extension == ".model") names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class TokenizerGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(TokenizerGolden, GivesTheIdsOfTheReference) {
  const auto tokenizer = Tokenizer::open(kFolder + "/" + GetParam());
  const std::vector<std::string> texts = golden_texts();
  const std::vector<json> expected = lines_of(kFolder + "/" + GetParam() + ".ids.jsonl");
  ASSERT_EQ(texts.size(), expected.size());
  ASSERT_GT(texts.size(), 150u);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto ids = expected[i]["ids"].get<std::vector<int32_t>>();
    ASSERT_EQ(tokenizer->encode(texts[i], true), ids) << "text " << i << ": " << texts[i].substr(0, 200);
    if (expected[i].contains("bare")) {
      ASSERT_EQ(tokenizer->encode(texts[i], false), expected[i]["bare"].get<std::vector<int32_t>>())
          << "text " << i;
    }
    if (expected[i].contains("text")) {
      ASSERT_EQ(tokenizer->decode(ids, true), expected[i]["text"].get<std::string>()) << "text " << i;
    }
    for (const int32_t id : ids) ASSERT_LT(id, tokenizer->vocab_size());
  }
}

TEST_P(TokenizerGolden, GivesTheSameFromSeveralThreads) {
  const auto tokenizer = Tokenizer::open(kFolder + "/" + GetParam());
  const std::vector<std::string> texts = golden_texts();
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  ThreadPool pool(4);
  const auto ids = tokenizer->encode_batch(views, false, pool);
  for (size_t i = 0; i < texts.size(); ++i)
    ASSERT_EQ(ids[i], tokenizer->encode(texts[i], false)) << "text " << i;
}

TEST_P(TokenizerGolden, StreamsWhatItDecodes) {
  const auto tokenizer = Tokenizer::open(kFolder + "/" + GetParam());
  const std::vector<std::string> texts = golden_texts();
  for (size_t i = 0; i < texts.size(); i += 3) {
    const std::vector<int32_t> ids = tokenizer->encode(texts[i], true);
    StreamDecoder stream(*tokenizer, true);
    std::string shown;
    for (const int32_t id : ids) {
      const std::string fresh = stream.push(id);
      ASSERT_FALSE(fresh.ends_with("\xEF\xBF\xBD")) << "an incomplete character of text " << i;
      shown += fresh;
    }
    shown += stream.finish();
    ASSERT_EQ(shown, tokenizer->decode(ids, true)) << "text " << i << ": " << texts[i].substr(0, 200);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, TokenizerGolden, ::testing::ValuesIn(files()), [](const auto& info) {
  std::string name = info.param.substr(0, info.param.find('.'));
  return name;
});

}  // namespace
}  // namespace lockstep

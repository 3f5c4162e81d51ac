// Chat templates beside the engine that transformers renders them with: chat/rendered.json, made by
// make_chat_golden.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "chat/chat_encoder.h"
#include "chat/tokenizer_testing.h"
#include "data/tokenize/tokenize.h"
#include "jinja/template.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
const std::string kFolder = LOCKSTEP_GOLDEN "/chat/";

ChatTemplate template_of(const std::string& name) {
  constexpr std::string_view kFile = "file ";
  if (!name.starts_with(kFile)) return find_chat_template(name, "");
  return {name, read_file(kFolder + name.substr(kFile.size()) + ".jinja")};
}

TEST(ChatGolden, TemplatesRenderAsTheEngineOfTransformersDoes) {
  const Json golden = Json::parse(read_file(kFolder + "rendered.json"));
  size_t refused = 0;
  for (const Json& expected : golden["cases"]) {
    SCOPED_TRACE(expected["template"].get<std::string>() + ", " +
                 expected["conversation"].get<std::string>());
    const ChatTemplate chat = template_of(expected["template"]);
    JinjaDict variables = value_of_json(golden["variables"].dump()).dict();
    variables.put("messages",
                  value_of_json(golden["conversations"][expected["conversation"].get<std::string>()].dump()));
    variables.put("add_generation_prompt", JinjaValue(expected["prompt"].get<bool>()));
    variables.put("tools", value_of_json(expected["tools"].dump()));
    variables.put("documents", {});
    if (expected.contains("error")) {
      ++refused;
      try {
        JinjaTemplate(chat.name, chat.source).render(variables);
        ADD_FAILURE() << "rendered, but the engine says " << expected["error"];
      } catch (const UserError&) {
      }
      continue;
    }
    const JinjaOutput output = JinjaTemplate(chat.name, chat.source).render(variables);
    EXPECT_EQ(output.text, expected["text"].get<std::string>());
    std::vector<std::pair<size_t, size_t>> generated;
    for (const Json& span : expected["generated"]) generated.emplace_back(span[0], span[1]);
    EXPECT_EQ(output.generated, generated);
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(golden["cases"].size(), refused);
}

struct Collected : TokenSink {
  void append(std::span<const int32_t> ids, std::span<const uint8_t>) override {
    all.insert(all.end(), ids.begin(), ids.end());
  }
  void end_document() override { ++documents; }
  std::vector<int32_t> all;
  int documents = 0;
};

TEST(ChatGolden, ConversationsInListsOfStructsAreThoseOfJson) {
  const Json golden = Json::parse(read_file(kFolder + "rendered.json"));
  TokenizeOptions options;
  options.tokenizer = std::make_shared<testing::ByteTokenizer>(std::vector<std::string>{"<s>", "</s>"});
  options.chat = std::make_shared<ChatEncoder>(options.tokenizer, find_chat_template("chatml", ""),
                                               ChatLoss::kResponses);
  options.input.format = "parquet";
  options.input.files = {kFolder + "messages.parquet"};
  options.input.messages = "talk";
  options.index_folder.writes = false;
  EXPECT_THROW(
      {
        Collected sink;
        DocumentSet(options).tokenize(sink);
      },
      UserError);
  // One conversation is empty and one is missing.
  options.bad = BadRecords::kSkip;
  options.most_bad = 0.5;
  Collected sink;
  EXPECT_EQ(DocumentSet(options).tokenize(sink).bad, 2);
  std::vector<int32_t> expected;
  for (const char* name : {"one", "system", "thought"}) {
    const ChatTokens tokens = options.chat->encode(value_of_json(golden["conversations"][name].dump()));
    expected.insert(expected.end(), tokens.ids.begin(), tokens.ids.end());
  }
  EXPECT_EQ(sink.all, expected);
  EXPECT_EQ(sink.documents, 3);
}

}  // namespace
}  // namespace lockstep

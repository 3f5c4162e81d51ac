// Chat templates beside the engine that transformers renders them with: chat/rendered.json, made by
// make_chat_golden.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "chat/chat_template.h"
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

}  // namespace
}  // namespace lockstep

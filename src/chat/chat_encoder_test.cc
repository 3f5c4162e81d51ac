#include "chat/chat_encoder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "chat/tokenizer_testing.h"

namespace lockstep {
namespace {

using testing::ByteTokenizer;

const std::vector<std::string> kSpecial{"<s>",
                                        "</s>",
                                        "<|im_start|>",
                                        "<|im_end|>",
                                        "<|eot_id|>",
                                        "<|end|>",
                                        "<|start_header_id|>",
                                        "<|end_header_id|>",
                                        "<start_of_turn>",
                                        "<end_of_turn>"};

std::shared_ptr<const Tokenizer> tokenizer(const std::vector<std::string>& merges = {}) {
  return std::make_shared<ByteTokenizer>(kSpecial, merges);
}

ChatEncoder encoder(std::string_view name, ChatLoss loss = ChatLoss::kResponses) {
  return {tokenizer(), find_chat_template(name, ""), loss};
}

// The text, with what counts between brackets.
std::string shown(const ChatTokens& tokens) {
  const ByteTokenizer texts(kSpecial);
  std::string out;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const bool before = i > 0 && tokens.counts[i - 1] != 0;
    if (tokens.counts[i] != 0 && !before) out += "[[";
    if (tokens.counts[i] == 0 && before) out += "]]";
    out += *texts.token_of(tokens.ids[i]);
  }
  if (!tokens.counts.empty() && tokens.counts.back() != 0) out += "]]";
  return out;
}

const JinjaValue& conversation() {
  static const JinjaValue kMessages = value_of_json(R"([{"role": "system", "content": "S"},
    {"role": "user", "content": "one"}, {"role": "assistant", "content": "1"},
    {"role": "user", "content": "two"}, {"role": "assistant", "content": "2 "}])");
  return kMessages;
}

std::string error_of(const ChatEncoder& chat, std::string_view messages) {
  try {
    chat.encode(value_of_json(messages));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ChatEncoder, ResponsesCountWithWhatEndsThem) {
  EXPECT_EQ(shown(encoder("chatml").encode(conversation())),
            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\n[[1<|"
            "im_end|>]]\n"
            "<|im_start|>user\ntwo<|im_end|>\n<|im_start|>assistant\n[[2 <|im_end|>]]\n");
  EXPECT_EQ(shown(encoder("llama3").encode("one", "1")),
            "<s><|start_header_id|>user<|end_header_id|>\n\none<|eot_id|><|start_header_id|>assistant"
            "<|end_header_id|>\n\n[[1<|eot_id|>]]");
  EXPECT_EQ(shown(encoder("llama2").encode(conversation())),
            "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\none [/INST][[ 1 </s>]]<s>[INST] two [/INST][[ 2 </s>]]");
  EXPECT_EQ(shown(encoder("mistral").encode("one", "1")), "<s> [INST] one [/INST][[ 1</s>]]");
  EXPECT_EQ(shown(encoder("mistral-v3").encode("one", "1")), "<s>[INST] one[/INST][[ 1</s>]]");
  EXPECT_EQ(shown(encoder("mistral-tekken").encode(conversation())),
            "<s>[INST]S\n\none[/INST][[1</s>]][INST]two[/INST][[2 </s>]]");
  EXPECT_EQ(shown(encoder("gemma").encode(conversation())),
            "<s><start_of_turn>user\nS\n\none<end_of_turn>\n<start_of_turn>model\n[[1<end_of_turn>]]\n"
            "<start_of_turn>user\ntwo<end_of_turn>\n<start_of_turn>model\n[[2<end_of_turn>]]\n");
  EXPECT_EQ(shown(encoder("zephyr").encode("one", "1")), "<|user|>\none</s>\n<|assistant|>\n[[1</s>]]\n");
  EXPECT_EQ(shown(encoder("phi3").encode("one", "1")), "<|user|>\none<|end|>\n<|assistant|>\n[[1<|end|>]]\n");
  EXPECT_EQ(shown(encoder("plain").encode("one ", "1")), "one [[1</s>]]");
  EXPECT_EQ(shown(encoder("plain", ChatLoss::kAll).encode("one ", "1")), "[[one 1</s>]]");
}

// Earlier turns lose what the model thought, and the last one gets an empty thought: no turn but the last is
// a prefix of the whole.
TEST(ChatEncoder, TurnsThatChangeOnceOthersFollow) {
  const ChatTemplate chat{"thinking",
                          "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}"
                          "{%- if m.role == 'assistant' and loop.last %}{{ '<think></think>' }}{% endif %}"
                          "{{- m.content.split('</think>')[-1] + '<|im_end|>\\n' }}{%- endfor %}"
                          "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"};
  const ChatEncoder encoder(tokenizer(), chat, ChatLoss::kResponses);
  EXPECT_EQ(
      shown(encoder.encode(value_of_json(R"([{"role": "user", "content": "a"},
    {"role": "assistant", "content": "<think>hm</think>b"}, {"role": "user", "content": "c"},
    {"role": "assistant", "content": "d"}])"))),
      "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n[[b<|im_end|>]]\n<|im_start|>user\nc<|im_end|>\n"
      "<|im_start|>assistant\n[[<think></think>d<|im_end|>]]\n");
}

TEST(ChatEncoder, ATemplateMaySayWhatIsGenerated) {
  const ChatTemplate chat{
      "own",
      "{%- for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}{% generation %}"
      "{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %};{% endfor %}"};
  const ChatEncoder encoder(tokenizer(), chat, ChatLoss::kResponses);
  EXPECT_EQ(shown(encoder.encode("a", "b")), "user:a;assistant:[[b]];");
}

TEST(ChatEncoder, AnEndWithinATokenIsRefused) {
  const ChatEncoder encoder(tokenizer({": b"}),
                            {"own",
                             "{% for m in messages %}{{ m.role }}: {{ m.content }}"
                             "{% endfor %}{% if add_generation_prompt %}assistant: "
                             "{% endif %}"},
                            ChatLoss::kResponses);
  try {
    encoder.encode("a", "b");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("a turn ends within a token"), std::string::npos)
        << error.what();
  }
}

TEST(ChatEncoder, WhatIsNoConversationIsRefused) {
  const ChatEncoder chat = encoder("chatml");
  EXPECT_EQ(error_of(chat, R"({"role": "user"})"), "the conversation is a mapping, not a list of messages");
  EXPECT_EQ(error_of(chat, R"([{"role": "user", "content": "a"}])"),
            "the conversation has no message of the assistant; there is nothing to learn from it");
  EXPECT_EQ(error_of(chat, R"([{"content": "a"}])"),
            "message 1 has no role; write \"role\": \"user\" or \"assistant\"");
  EXPECT_EQ(error_of(chat, R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": " \n"}])"),
            "the response in message 2 is empty");
  EXPECT_EQ(
      error_of(chat, R"([{"role": "narrator", "content": "a"}, {"role": "assistant", "content": "b"}])"),
      "the chat template chatml, line 4: there is no role 'narrator'; write system, user, assistant or tool");
  EXPECT_THROW(encoder("plain").encode("a", " "), UserError);
  EXPECT_THROW(find_chat_template("chatmll", ""), UserError);
}

}  // namespace
}  // namespace lockstep

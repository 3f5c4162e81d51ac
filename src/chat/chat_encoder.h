// ChatEncoder: a conversation as the tokens that a model is trained on, and which of them count in the loss.
//
// The conversation is rendered as a whole and tokenized as a whole, so that ids are those that a server of
// the model will send it. A turn of the assistant counts from where the template's generation prompt ends up
// to and with the token that ends the turn. Where a turn begins and ends is found by rendering: what precedes
// it with a generation prompt, and the conversation up to it; where a template writes earlier turns
// differently once others follow (it leaves out what the model thought), by rendering a mark in place of the
// turn's content. A template that says itself what is generated ({% generation %}) is believed.
//
// An end of a turn that lies within a token is an error, not a guess.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_template.h"
#include "jinja/template.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

struct ChatTokens {
  std::vector<int32_t> ids;
  std::vector<uint8_t> counts;  // of each id: 1 where it counts as a target
};

enum class ChatLoss : uint8_t { kResponses, kAll };

class ChatEncoder {
 public:
  // Throws UserError for a template that cannot be read.
  ChatEncoder(std::shared_ptr<const Tokenizer> tokenizer, const ChatTemplate& chat, ChatLoss loss);

  // `messages` is a list of mappings with role and content. Throws UserError for one that is none, a
  // conversation that the template refuses, one without a response and one with an empty response. May be
  // called by several threads at a time.
  ChatTokens encode(const JinjaValue& messages) const;
  // A turn of the user and the answer to it.
  ChatTokens encode(std::string_view prompt, std::string_view response) const;

  // The text that the template makes of a conversation.
  std::string text_of(const JinjaValue& messages, bool generation_prompt) const;

 private:
  struct Span {
    size_t begin = 0, end = 0;
    bool cut_at_content = false;  // the end is that of the content: the token that ends the turn follows
  };
  JinjaOutput render(JinjaList messages, bool generation_prompt) const;
  std::vector<Span> response_spans(const JinjaList& messages, const JinjaOutput& whole) const;
  Span span_of(const JinjaList& messages, size_t turn, const std::string& whole) const;
  void mark(const std::string& text, const std::vector<Span>& spans, ChatTokens& tokens) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  JinjaTemplate template_;
  ChatLoss loss_;
  JinjaDict variables_;  // the special tokens
};

}  // namespace lockstep

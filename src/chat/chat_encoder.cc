#include "chat/chat_encoder.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace lockstep {
namespace {

// Stands for the content of a turn, to see where it goes. Private-use characters, which no trim takes off.
constexpr std::string_view kMark = "\ue000\ue001content\ue001\ue000";

bool is_blank(std::string_view text) { return stripped(text, true, true).empty(); }

std::string role_of(const JinjaValue& message) {
  const JinjaValue* role = message.dict().find("role");
  return role != nullptr && role->is_text() ? role->text() : "";
}

void check_message(const JinjaValue& message, size_t number) {
  if (!message.is_dict()) throw UserError("message {} is no object with role and content", number);
  const JinjaValue* role = message.dict().find("role");
  const JinjaValue* content = message.dict().find("content");
  if (role == nullptr || !role->is_text())
    throw UserError("message {} has no role; write \"role\": \"user\" or \"assistant\"", number);
  const bool calls = message.dict().find("tool_calls") != nullptr;
  if (content == nullptr && !calls)
    throw UserError("message {} of role '{}' has no content", number, role->text());
  if (role->text() == "assistant" && !calls && content->is_text() && is_blank(content->text()))
    throw UserError("the response in message {} is empty", number);
}

// How many tokens of a whole text lie before bytes of it, asked in ascending order.
class TokenBoundaries {
 public:
  TokenBoundaries(const Tokenizer& tokenizer, std::string_view text, const std::vector<int32_t>& ids)
      : tokenizer_(tokenizer), text_(text), ids_(ids) {}

  size_t before(size_t byte) {
    if (byte == text_.size()) return ids_.size();
    if (byte == byte_) return token_;
    // What lies between two boundaries mostly has the same tokens on its own as within the whole.
    const std::vector<int32_t> piece = tokenizer_.encode(text_.substr(byte_, byte - byte_), false);
    if (begins(token_, piece)) return moved(byte, token_ + piece.size());
    const std::vector<int32_t> prefix = tokenizer_.encode(text_.substr(0, byte), false);
    if (begins(0, prefix)) return moved(byte, prefix.size());
    const std::string_view around = text_.substr(byte - std::min<size_t>(byte, 20), 40);
    throw UserError(
        "a turn ends within a token, near '{}': what is learnt could not be generated; change the template "
        "so "
        "that a special token, or no space, stands before the response",
        around);
  }

 private:
  bool begins(size_t at, const std::vector<int32_t>& piece) const {
    return piece.size() <= ids_.size() - at &&
           std::equal(piece.begin(), piece.end(), ids_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  size_t moved(size_t byte, size_t token) {
    byte_ = byte;
    return token_ = token;
  }

  const Tokenizer& tokenizer_;
  std::string_view text_;
  const std::vector<int32_t>& ids_;
  size_t byte_ = 0, token_ = 0;
};

// Whether the tokenizer itself begins a text with this token.
bool frames_with(const Tokenizer& tokenizer, int32_t token) {
  const std::vector<int32_t> framed = tokenizer.encode("a", true);
  return !framed.empty() && framed.front() == token;
}

}  // namespace

ChatEncoder::ChatEncoder(std::shared_ptr<const Tokenizer> tokenizer, const ChatTemplate& chat, ChatLoss loss)
    : tokenizer_(std::move(tokenizer)), template_(chat.name, chat.source), loss_(loss) {
  const auto add = [&](const char* name, std::optional<int32_t> id) {
    if (!id) return;
    if (const auto token = tokenizer_->token_of(*id)) variables_.put(name, JinjaValue(*token));
  };
  add("bos_token", tokenizer_->bos());
  add("eos_token", tokenizer_->eos());
  add("pad_token", tokenizer_->pad());
  add("unk_token", tokenizer_->unk());
  variables_.put("begin_token", JinjaValue(""));
  if (const auto bos = tokenizer_->bos(); bos && frames_with(*tokenizer_, *bos)) add("begin_token", bos);
  variables_.put("tools", {});
  variables_.put("documents", {});
}

JinjaOutput ChatEncoder::render(JinjaList messages, bool generation_prompt) const {
  JinjaDict variables = variables_;
  variables.put("messages", JinjaValue(std::move(messages)));
  variables.put("add_generation_prompt", JinjaValue(generation_prompt));
  return template_.render(variables);
}

std::string ChatEncoder::text_of(const JinjaValue& messages, bool generation_prompt) const {
  return render(messages.list(), generation_prompt).text;
}

ChatEncoder::Span ChatEncoder::span_of(const JinjaList& messages, size_t turn,
                                       const std::string& whole) const {
  // The length of a rendering that the whole begins with.
  const auto prefix = [&](size_t turns, bool generation_prompt) -> std::optional<size_t> {
    if (turns == 0) return {};
    try {
      const JinjaList first(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(turns));
      const std::string text = render(first, generation_prompt).text;
      if (whole.starts_with(text)) return text.size();
    } catch (const UserError&) {
      // The template does not take a part of a conversation.
    }
    return {};
  };
  const auto begin = prefix(turn, true);
  const auto end = turn + 1 == messages.size() ? std::optional(whole.size()) : prefix(turn + 1, false);
  if (begin && end && *begin < *end) return {*begin, *end};
  JinjaList marked = messages;
  JinjaDict message = marked[turn].dict();
  message.put("content", JinjaValue(kMark));
  marked[turn] = JinjaValue(std::move(message));
  const std::string text = render(std::move(marked), false).text;
  const size_t at = text.find(kMark);
  const std::string_view before = std::string_view(text).substr(0, at);
  const std::string_view after =
      at == std::string::npos ? "" : std::string_view(text).substr(at + kMark.size());
  if (at == std::string::npos || before.size() + after.size() > whole.size() || !whole.starts_with(before) ||
      !whole.ends_with(after))
    throw UserError(
        "the template does not show where the response in message {} stands; use another chat_template",
        turn + 1);
  Span span{begin.value_or(before.size()), whole.size() - after.size(), true};
  if (span.begin > span.end) span.begin = before.size();
  return span;
}

std::vector<ChatEncoder::Span> ChatEncoder::response_spans(const JinjaList& messages,
                                                           const JinjaOutput& whole) const {
  std::vector<Span> spans;
  if (template_.has_generation()) {
    for (const auto& [begin, end] : whole.generated) spans.push_back({begin, end});
    return spans;
  }
  for (size_t turn = 0; turn < messages.size(); ++turn)
    if (role_of(messages[turn]) == "assistant") spans.push_back(span_of(messages, turn, whole.text));
  return spans;
}

void ChatEncoder::mark(const std::string& text, const std::vector<Span>& spans, ChatTokens& tokens) const {
  TokenBoundaries boundaries(*tokenizer_, text, tokens.ids);
  for (const Span& span : spans) {
    const size_t begin = boundaries.before(span.begin);
    size_t end = boundaries.before(span.end);
    const auto special = [&](size_t token) { return tokenizer_->is_special(tokens.ids[token]); };
    if (span.cut_at_content) {
      if (end < tokens.ids.size() && special(end)) ++end;
    } else if (!template_.has_generation()) {
      // What follows the token that ends the turn (a new line) is the template's, not the model's.
      size_t last = end;
      while (last > begin && !special(last - 1)) --last;
      const auto rest = std::span(tokens.ids).subspan(last, end - last);
      if (last > begin && is_blank(tokenizer_->decode(rest, false))) end = last;
    }
    std::fill(tokens.counts.begin() + static_cast<std::ptrdiff_t>(begin),
              tokens.counts.begin() + static_cast<std::ptrdiff_t>(end), uint8_t{1});
  }
}

ChatTokens ChatEncoder::encode(const JinjaValue& messages) const {
  if (!messages.is_list())
    throw UserError("the conversation is {}, not a list of messages", messages.type_name());
  const JinjaList& list = messages.list();
  bool answered = false;
  for (size_t i = 0; i < list.size(); ++i) {
    check_message(list[i], i + 1);
    answered = answered || role_of(list[i]) == "assistant";
  }
  if (!answered && loss_ == ChatLoss::kResponses)
    throw UserError("the conversation has no message of the assistant; there is nothing to learn from it");
  const JinjaOutput whole = render(list, false);
  ChatTokens tokens;
  tokens.ids = tokenizer_->encode(whole.text, false);
  tokens.counts.assign(tokens.ids.size(), loss_ == ChatLoss::kAll ? 1 : 0);
  if (loss_ == ChatLoss::kResponses) mark(whole.text, response_spans(list, whole), tokens);
  return tokens;
}

ChatTokens ChatEncoder::encode(std::string_view prompt, std::string_view response) const {
  const auto message = [](const char* role, std::string_view content) {
    JinjaDict dict;
    dict.put("role", JinjaValue(role));
    dict.put("content", JinjaValue(content));
    return JinjaValue(std::move(dict));
  };
  if (is_blank(response)) throw UserError("the response is empty");
  return encode(JinjaValue(JinjaList{message("user", prompt), message("assistant", response)}));
}

}  // namespace lockstep

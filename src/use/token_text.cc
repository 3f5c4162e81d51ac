#include "use/token_text.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"

namespace lockstep {
namespace {

class IdText final : public TokenText {
 public:
  explicit IdText(int64_t vocab) : vocab_(vocab) {}

  std::vector<int32_t> encode(std::string_view prompt) const override {
    std::vector<int32_t> ids;
    constexpr std::string_view kBetween = " ,\t\r\n";
    for (size_t at = prompt.find_first_not_of(kBetween); at != std::string_view::npos;) {
      const size_t end = std::min(prompt.find_first_of(kBetween, at), prompt.size());
      const std::string_view word = prompt.substr(at, end - at);
      int64_t id = -1;
      const auto [rest, failure] = std::from_chars(word.data(), word.data() + word.size(), id);
      if (failure != std::errc() || rest != word.data() + word.size() || id < 0 || id >= vocab_)
        throw UserError("'{}' is no token; with --ids a prompt is numbers from 0 to {}, as in \"1 17 42\"",
                        word, vocab_ - 1);
      ids.push_back(static_cast<int32_t>(id));
      at = prompt.find_first_not_of(kBetween, end);
    }
    return ids;
  }
  std::string push(int32_t token) override {
    const std::string text = fmt::format("{}{}", first_ ? "" : " ", token);
    first_ = false;
    return text;
  }
  std::string finish() override { return {}; }
  void restart() override { first_ = true; }

 private:
  int64_t vocab_;
  bool first_ = true;
};

// How many bytes a character has by its first one; 0: none begins so.
size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  if (first >= 0xF0 && first <= 0xF4) return 4;
  return 0;
}

// Whether byte `i` of a character that begins with these may be this one.
bool continues(std::string_view begun, unsigned char next) {
  if ((next & 0xC0) != 0x80) return false;
  if (begun.size() != 1) return true;
  switch (static_cast<unsigned char>(begun[0])) {
    case 0xE0: return next >= 0xA0;  // else it would be longer than it need be
    case 0xED: return next <= 0x9F;  // else a surrogate
    case 0xF0: return next >= 0x90;
    case 0xF4: return next <= 0x8F;  // else above U+10FFFF
    default: return true;
  }
}

class ByteText final : public TokenText {
 public:
  std::vector<int32_t> encode(std::string_view prompt) const override {
    std::vector<int32_t> ids;
    for (const char byte : prompt) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
  std::string push(int32_t token) override {
    const auto byte = static_cast<unsigned char>(token);
    std::string text;
    if (!held_.empty() && !continues(held_, byte)) text = finish();
    if (held_.empty() && length_of(byte) == 0) return text + std::string(kReplacement);
    held_ += static_cast<char>(byte);
    if (held_.size() == length_of(static_cast<unsigned char>(held_[0]))) text += std::exchange(held_, {});
    return text;
  }
  std::string finish() override {
    if (held_.empty()) return {};
    held_.clear();
    return std::string(kReplacement);
  }
  void restart() override { held_.clear(); }

 private:
  static constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string held_;  // a character that has begun
};

}  // namespace

std::unique_ptr<TokenText> make_id_text(int64_t vocab) { return std::make_unique<IdText>(vocab); }
std::unique_ptr<TokenText> make_byte_text() { return std::make_unique<ByteText>(); }

}  // namespace lockstep

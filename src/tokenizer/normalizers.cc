#include "tokenizer/normalizers.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/bpe.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

class ByFunction : public Normalizer {
 public:
  explicit ByFunction(std::function<std::string(std::string_view)> change) : change_(std::move(change)) {}
  void apply(NormalText& text) const override { text.text = change_(text.text); }

 private:
  std::function<std::string(std::string_view)> change_;
};

// Each character is kept, left out or replaced by another.
class ByChar : public Normalizer {
 public:
  static constexpr char32_t kDrop = 0x110000;
  explicit ByChar(std::function<char32_t(char32_t c, uint32_t flags)> change) : change_(std::move(change)) {}

  void apply(NormalText& text) const override {
    const CodePoints& points = code_points();
    std::string out;
    out.reserve(text.text.size());
    for (size_t i = 0; i < text.text.size();) {
      const DecodedChar c = decode_char(text.text.data() + i);
      const char32_t to = change_(c.value, points[c.value]);
      if (to != kDrop) append_char(out, to);
      if (to == kDrop && out.empty()) text.from_start = false;
      i += c.bytes;
    }
    text.text = std::move(out);
  }

 private:
  std::function<char32_t(char32_t, uint32_t)> change_;
};

class StripSpaces : public Normalizer {
 public:
  StripSpaces(bool left, bool right) : left_(left), right_(right) {}

  void apply(NormalText& text) const override {
    const CodePoints& points = code_points();
    std::string_view rest = text.text;
    while (left_ && !rest.empty()) {
      const DecodedChar c = decode_char(rest.data());
      if (!(points[c.value] & kSpaceChar)) break;
      rest.remove_prefix(c.bytes);
      text.from_start = false;
    }
    while (right_ && !rest.empty()) {
      size_t last = rest.size() - 1;
      while (is_continuation(rest[last])) --last;
      if (!(points[decode_char(rest.data() + last).value] & kSpaceChar)) break;
      rest = rest.substr(0, last);
    }
    text.text = std::string(rest);
  }

 private:
  bool left_, right_;
};

class PrependText : public Normalizer {
 public:
  explicit PrependText(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(NormalText& text) const override {
    if (!text.text.empty()) text.text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class ReplacePattern : public Normalizer {
 public:
  ReplacePattern(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(NormalText& text) const override {
    std::vector<TextRange> matches;
    pattern_.find_all(text.text, {0, static_cast<uint32_t>(text.text.size())}, matches);
    if (matches.empty()) return;
    std::string out;
    size_t copied = 0;
    for (const auto [begin, end] : matches) {
      out.append(text.text, copied, begin - copied);
      out.append(content_);
      copied = end;
    }
    out.append(text.text, copied);
    // What replaces several characters counts as coming from the last of them.
    const auto [begin, end] = matches.front();
    if (begin == 0 && end > 0 && (content_.empty() || end > decode_char(text.text.data()).bytes))
      text.from_start = false;
    text.text = std::move(out);
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class SequenceOfNormalizers : public Normalizer {
 public:
  explicit SequenceOfNormalizers(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  void apply(NormalText& text) const override {
    for (const auto& part : parts_) part->apply(text);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string with_spaces_around_ideographs(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const DecodedChar c = decode_char(text.data() + i);
    const bool ideograph = c.value >= 0x3400 && is_ideograph(c.value);
    if (ideograph) out.push_back(' ');
    out.append(text.substr(i, c.bytes));
    if (ideograph) out.push_back(' ');
    i += c.bytes;
  }
  return out;
}

std::unique_ptr<Normalizer> make_bert(JsonPart& part) {
  std::vector<std::unique_ptr<Normalizer>> steps;
  const bool lower = part.flag("lowercase");
  if (part.flag("clean_text")) {
    steps.push_back(std::make_unique<ByChar>([](char32_t c, uint32_t flags) -> char32_t {
      if (flags & kControlChar) return ByChar::kDrop;
      return flags & kSpaceChar ? U' ' : c;
    }));
  }
  if (part.flag("handle_chinese_chars"))
    steps.push_back(std::make_unique<ByFunction>(with_spaces_around_ideographs));
  if (part.flag("strip_accents", lower)) {
    steps.push_back(
        std::make_unique<ByFunction>([](std::string_view t) { return normalized(t, NormalForm::kNfd); }));
    steps.push_back(std::make_unique<ByChar>(
        [](char32_t c, uint32_t flags) { return flags & kNonspacing ? ByChar::kDrop : c; }));
  }
  if (lower) steps.push_back(std::make_unique<ByFunction>(lowercased));
  return std::make_unique<SequenceOfNormalizers>(std::move(steps));
}

// Nmt: control characters go, what looks like a space becomes one.
char32_t nmt_char(char32_t c, uint32_t) {
  if ((c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
      c == 0x9F)
    return ByChar::kDrop;
  const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                     (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xFEFF || c == 0xFFFD;
  return space ? U' ' : c;
}

std::string in_byte_level(std::string_view text) {
  std::string out;
  out.reserve(text.size() * 2);
  for (const char c : text) append_char(out, byte_level_char(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(JsonPart& part) {
  static constexpr std::string_view kKnown[] = {
      "NFC",     "NFD",         "NFKC",           "NFKD",     "Lowercase", "Strip",        "Prepend",
      "Replace", "Precompiled", "BertNormalizer", "Sequence", "Nmt",       "StripAccents", "ByteLevel"};
  const std::string type = part.choice("type", kKnown);
  std::unique_ptr<Normalizer> made;
  const auto form = [&](NormalForm f) {
    made = std::make_unique<ByFunction>([f](std::string_view text) { return normalized(text, f); });
  };
  if (type == "NFC") form(NormalForm::kNfc);
  if (type == "NFD") form(NormalForm::kNfd);
  if (type == "NFKC") form(NormalForm::kNfkc);
  if (type == "NFKD") form(NormalForm::kNfkd);
  if (type == "Lowercase") made = std::make_unique<ByFunction>(lowercased);
  if (type == "Nmt") made = std::make_unique<ByChar>(nmt_char);
  if (type == "ByteLevel") made = std::make_unique<ByFunction>(in_byte_level);
  if (type == "BertNormalizer") made = make_bert(part);
  if (type == "Prepend") made = std::make_unique<PrependText>(part.text("prepend"));
  if (type == "Strip")
    made = std::make_unique<StripSpaces>(part.flag("strip_left"), part.flag("strip_right"));
  if (type == "StripAccents") {
    made = std::make_unique<ByChar>(
        [](char32_t c, uint32_t flags) { return flags & kCombining ? ByChar::kDrop : c; });
  }
  if (type == "Replace") {
    Pattern pattern = read_pattern(part, "pattern");
    made = std::make_unique<ReplacePattern>(std::move(pattern), part.text("content"));
  }
  if (type == "Precompiled") {
    auto map = std::make_shared<CharsMap>(
        from_base64(part.text("precompiled_charsmap"), part.place("precompiled_charsmap")),
        part.place("precompiled_charsmap"));
    made =
        std::make_unique<ByFunction>([map](std::string_view text) { return map->apply_to_clusters(text); });
  }
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> steps;
    for (JsonPart& step : part.parts("normalizers")) steps.push_back(make_normalizer(step));
    made = std::make_unique<SequenceOfNormalizers>(std::move(steps));
  }
  part.finish();
  return made;
}

}  // namespace lockstep::tok

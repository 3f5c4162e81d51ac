#include "tokenizer/decoders.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pattern.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

using Tokens = std::vector<std::string>;

class DecodeStep : public Decoder {
 public:
  explicit DecodeStep(std::function<void(Tokens&)> step) : step_(std::move(step)) {}
  void apply(Tokens& tokens) const override { step_(tokens); }

 private:
  std::function<void(Tokens&)> step_;
};

std::unique_ptr<Decoder> step(std::function<void(Tokens&)> function) {
  return std::make_unique<DecodeStep>(std::move(function));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

void fuse(Tokens& tokens) {
  std::string whole;
  for (const std::string& token : tokens) whole += token;
  tokens.assign(1, std::move(whole));
}

void from_bytes(Tokens& tokens) {
  std::string whole, bytes;
  for (const std::string& token : tokens) whole += from_byte_level(token, bytes) ? bytes : token;
  tokens.assign(1, is_utf8(whole) ? std::move(whole) : with_replacements(whole));
}

// 0 to 255 for <0x00> to <0xFF>, else -1.
int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  // Rust reads a sign in front of one digit.
  const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// A run of byte tokens is the text that its bytes are; if they are none, U+FFFD for each byte.
void join_fallback_bytes(Tokens& tokens) {
  Tokens out;
  std::string run;
  const auto close = [&] {
    if (run.empty()) return;
    if (is_utf8(run)) {
      out.push_back(run);
    } else {
      out.insert(out.end(), run.size(), std::string(kReplacementChar));
    }
    run.clear();
  };
  for (std::string& token : tokens) {
    const int byte = fallback_byte(token);
    if (byte >= 0) {
      run.push_back(static_cast<char>(byte));
      continue;
    }
    close();
    out.push_back(std::move(token));
  }
  close();
  tokens = std::move(out);
}

void strip(std::string& token, std::string_view content, int64_t start, int64_t stop) {
  std::string_view rest = token;
  // As the reference, whose two ends may cross: the counts are taken from the whole token.
  size_t front = 0, back = rest.size();
  for (int64_t i = 0; i < start && rest.substr(front).starts_with(content); ++i) front += content.size();
  for (int64_t i = 0; i < stop && rest.substr(0, back).ends_with(content); ++i) back -= content.size();
  token = front < back ? std::string(rest.substr(front, back - front)) : std::string();
}

void clean_up(std::string& token) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) replace_all(token, from, to);
}

std::unique_ptr<Decoder> make_word_piece(JsonPart& part) {
  return step([prefix = part.text("prefix"), cleanup = part.flag("cleanup")](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0 && tokens[i].starts_with(prefix)) {
        tokens[i].erase(0, prefix.size());
      } else if (i > 0) {
        tokens[i] = fmt::format(" {}", tokens[i]);
      }
      if (cleanup) clean_up(tokens[i]);
    }
  });
}

std::unique_ptr<Decoder> make_metaspace(JsonPart& part) {
  static constexpr std::string_view kSchemes[] = {"always", "first", "never"};
  const std::string mark = from_chars(std::u32string(1, part.character("replacement")));
  const std::string scheme = part.find("prepend_scheme") ? part.choice("prepend_scheme", kSchemes) : "always";
  const bool never = scheme == "never";
  if (!part.flag("add_prefix_space", true) && !never)
    part.refuse("add_prefix_space", fmt::format("is false, but prepend_scheme is '{}'", scheme));
  part.ignore({"split", "str_rep"});
  return step([mark, never](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], mark, i == 0 && !never ? "" : " ");
  });
}

std::unique_ptr<Decoder> make_replace(JsonPart& part) {
  auto pattern = std::make_shared<const Pattern>(read_pattern(part, "pattern"));
  return step([pattern, content = part.text("content")](Tokens& tokens) {
    std::vector<TextRange> matches;
    for (std::string& token : tokens) {
      matches.clear();
      pattern->find_all(token, {0, static_cast<uint32_t>(token.size())}, matches);
      if (matches.empty()) continue;
      std::string out;
      size_t copied = 0;
      for (const auto [begin, end] : matches) {
        out.append(token, copied, begin - copied).append(content);
        copied = end;
      }
      token = out.append(token, copied);
    }
  });
}

}  // namespace

std::unique_ptr<Decoder> make_decoder(JsonPart& part) {
  static constexpr std::string_view kKnown[] = {"ByteLevel", "ByteFallback", "Fuse",
                                                "Strip",     "Replace",      "WordPiece",
                                                "Metaspace", "Sequence",     "BPEDecoder"};
  const std::string type = part.choice("type", kKnown);
  std::unique_ptr<Decoder> made;
  if (type == "ByteLevel") {
    made = step(from_bytes);
    part.ignore({"add_prefix_space", "trim_offsets", "use_regex"});
  }
  if (type == "ByteFallback") made = step(join_fallback_bytes);
  if (type == "Fuse") made = step(fuse);
  if (type == "WordPiece") made = make_word_piece(part);
  if (type == "Metaspace") made = make_metaspace(part);
  if (type == "Replace") made = make_replace(part);
  if (type == "Strip") {
    made = step([content = from_chars(std::u32string(1, part.character("content"))),
                 start = part.number("start", 0, 1 << 20),
                 stop = part.number("stop", 0, 1 << 20)](Tokens& tokens) {
      for (std::string& token : tokens) strip(token, content, start, stop);
    });
  }
  if (type == "BPEDecoder") {
    made = step([suffix = part.text("suffix")](Tokens& tokens) {
      for (size_t i = 0; i < tokens.size() && !suffix.empty(); ++i)
        replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
    });
  }
  if (type == "Sequence") {
    std::vector<std::shared_ptr<Decoder>> steps;
    for (JsonPart& each : part.parts("decoders")) steps.push_back(make_decoder(each));
    made = step([steps](Tokens& tokens) {
      for (const auto& each : steps) each->apply(tokens);
    });
  }
  part.finish();
  return made;
}

}  // namespace lockstep::tok

// A regular expression of a tokenizer.json, as Oniguruma reads it, run by PCRE2.
//
// PCRE2 knows another version of Unicode, so that every class of characters is spelled out from our tables.
// What the two libraries read differently, and what is not worth spelling out, is refused by name.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/json_part.h"
#include "tokenizer/scanners.h"

struct pcre2_real_code_8;

namespace lockstep::tok {

class Pattern {
 public:
  // `where` names the file and the key in errors.
  static Pattern regex(std::string_view pattern, const std::string& where);
  static Pattern literal(std::string_view text, const std::string& where);
  ~Pattern();
  Pattern(Pattern&& other) noexcept;
  Pattern& operator=(Pattern&&) = delete;

  // Appends all matches in the range, which is valid UTF-8, as if it were a text of its own; empty ones too.
  void find_all(std::string_view text, TextRange range, std::vector<TextRange>& matches) const;

 private:
  Pattern(pcre2_real_code_8* code, std::string literal, std::string where);

  pcre2_real_code_8* code_;  // null for a literal
  std::string literal_, where_;
};

// {"String": ...} or {"Regex": ...}.
Pattern read_pattern(JsonPart& part, std::string_view key);

// The pattern with its classes spelled out.
std::string translate_pattern(std::string_view pattern, const std::string& where);

}  // namespace lockstep::tok

// The words of a template: what stands outside of tags as text, with the whitespace around tags taken off as
// trim_blocks, lstrip_blocks and the marks - and + say, and the words within tags.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class JinjaWordKind : uint8_t {
  kText,
  kPrintBegin,
  kPrintEnd,
  kTagBegin,
  kTagEnd,
  kName,
  kString,
  kWhole,
  kReal,
  kOperator,
  kEnd
};

struct JinjaWord {
  JinjaWordKind kind = JinjaWordKind::kEnd;
  std::string text = {};  // strings without their quotes and escapes
  int line = 1;
};

// Throws UserError that names the line.
std::vector<JinjaWord> jinja_words(std::string_view source);

}  // namespace lockstep

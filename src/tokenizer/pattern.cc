#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/pattern.h"

#include <pcre2.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  const int bytes = pcre2_get_error_message(code, text, sizeof text);
  return bytes < 0 ? fmt::format("error {}", code)
                   : std::string(reinterpret_cast<char*>(text), static_cast<size_t>(bytes));
}

struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

}  // namespace

Pattern::Pattern(pcre2_real_code_8* code, std::string literal, std::string where)
    : code_(code), literal_(std::move(literal)), where_(std::move(where)) {}

Pattern::Pattern(Pattern&& other) noexcept
    : code_(std::exchange(other.code_, nullptr)),
      literal_(std::move(other.literal_)),
      where_(std::move(other.where_)) {}

Pattern::~Pattern() { pcre2_code_free(code_); }

Pattern Pattern::literal(std::string_view text, const std::string& where) {
  return {nullptr, std::string(text), where};
}

Pattern Pattern::regex(std::string_view pattern, const std::string& where) {
  const std::string translated = translate_pattern(pattern, where);
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Ruby's syntax, which Oniguruma reads: ^ and $ are the begins and ends of lines.
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (!code)
    throw UserError("{}: the pattern '{}' cannot be read: {}", where, printable(pattern), message_of(error));
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is none, the interpreter runs it
  return {code, {}, where};
}

void Pattern::find_all(std::string_view text, TextRange range, std::vector<TextRange>& matches) const {
  const std::string_view part = text.substr(range.begin, range.end - range.begin);
  if (!code_) {
    if (literal_.empty()) return;
    for (size_t at = part.find(literal_); at != std::string_view::npos;
         at = part.find(literal_, at + literal_.size()))
      matches.push_back({range.begin + static_cast<uint32_t>(at),
                         range.begin + static_cast<uint32_t>(at + literal_.size())});
    return;
  }
  const std::unique_ptr<pcre2_match_data, FreeMatch> data(
      pcre2_match_data_create_from_pattern(code_, nullptr));
  size_t from = 0;
  size_t last_end = SIZE_MAX;
  while (from <= part.size()) {
    const int found = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(part.data()), part.size(), from,
                                  PCRE2_NO_UTF_CHECK, data.get(), nullptr);
    if (found == PCRE2_ERROR_NOMATCH) return;
    if (found < 0) throw UserError("{}: the pattern cannot be matched: {}", where_, message_of(found));
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data.get());
    const size_t begin = offsets[0], end = offsets[1];
    const size_t step = end < part.size() ? decode_char(part.data() + end).bytes : 1;
    // An empty match right behind the last one is none.
    if (begin == end && last_end == end) {
      from = end + step;
      continue;
    }
    matches.push_back({range.begin + static_cast<uint32_t>(begin), range.begin + static_cast<uint32_t>(end)});
    last_end = end;
    from = begin == end ? end + step : end;
  }
}

Pattern read_pattern(JsonPart& part, std::string_view key) {
  JsonPart pattern = part.part(key);
  const bool literal = pattern.find("String") != nullptr;
  const std::string text = pattern.text(literal ? "String" : "Regex");
  pattern.finish();
  return literal ? Pattern::literal(text, part.place(key)) : Pattern::regex(text, part.place(key));
}

}  // namespace lockstep::tok

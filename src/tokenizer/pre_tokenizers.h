// How a tokenizer.json cuts a normalized text into words.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/json_part.h"
#include "tokenizer/scanners.h"

namespace lockstep::tok {

// A text and its words so far; at first the whole is one. Words are never empty.
struct TextWords {
  std::string_view text;
  std::vector<TextRange> words;
  bool from_start = true;  // the first word begins where the original text does

  // What the steps work in.
  std::string changed, spare;  // changed: what `text` may point to
  std::vector<TextRange> cut, matches;

  void reset(std::string_view whole, bool at_start);
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(TextWords& words) const = 0;
};

// With `over_bytes` the last step, a ByteLevel, leaves bytes as they are: the model reads bytes (bpe.h).
std::unique_ptr<PreTokenizer> make_pre_tokenizer(JsonPart& part, bool over_bytes);
// Whether it ends with its only ByteLevel.
bool ends_in_byte_level(JsonPart part);

// Text without a pre-tokenizer is one word. This one cuts it before each `mark` where the byte in front
// allows it.
std::unique_ptr<PreTokenizer> make_mark_cutter(std::string mark, const bool (&before)[256]);

}  // namespace lockstep::tok

// What stands between a text and the tokens of a model: the prompt's tokens, and the text of those that a
// model writes, as it becomes final.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class TokenText {
 public:
  virtual ~TokenText() = default;
  virtual std::vector<int32_t> encode(std::string_view prompt) const = 0;
  // What can be shown now that this token has come. Characters that are not whole yet are held back.
  virtual std::string push(int32_t token) = 0;
  // What was held back.
  virtual std::string finish() = 0;
  // Of the text that comes next.
  virtual void restart() = 0;
};

// Numbers of tokens with spaces or commas between them; written with a space before each but the first.
// `vocab`: numbers are below it.
std::unique_ptr<TokenText> make_id_text(int64_t vocab);
// Tokens are bytes; what is no UTF-8 comes out as U+FFFD.
std::unique_ptr<TokenText> make_byte_text();

}  // namespace lockstep

#include "fuzz/tokenizer.h"

#include <memory>

#include "base/error.h"
#include "tokenizer/tokenizer.h"

namespace lockstep::testing {
namespace {

constexpr std::string_view kTexts[] = {"",
                                       "a",
                                       "Hello, world! It's 12345.",
                                       "  \n\n\t x\r\n",
                                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
                                       "\xE2\x96\x81 \xC3\xA9 e\xCC\x81\xE5\xAD\x97\xF0\x9F\x98\x80",
                                       "\xFF\xE2\x96 \x00 \xED\xA0\x80",
                                       "<s>a</s> <u> ##b <0x0A>"};

bool check(const Tokenizer& tokenizer) {
  for (const std::string_view text : kTexts) {
    std::vector<int32_t> ids;
    try {
      ids = tokenizer.encode(text, true);
    } catch (const UserError&) {
      continue;  // a word that a vocabulary without an unknown token lacks
    }
    LOCKSTEP_CHECK(tokenizer.encode(text, true) == ids, "other ids the second time");
    // Those of the frame are the file's own, whether there is such a token or not.
    for (const int32_t id : tokenizer.encode(text, false))
      LOCKSTEP_CHECK(id >= 0 && id < tokenizer.vocab_size() && tokenizer.token_of(id), "id {} of {}", id,
                     tokenizer.vocab_size());
    StreamDecoder stream(tokenizer, true);
    for (const int32_t id : ids) stream.push(id);
    stream.finish();
    tokenizer.decode(ids, false);
  }
  return true;
}

}  // namespace

bool check_tokenizer_json(std::string_view file) {
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = Tokenizer::from_json(file, "input");
  } catch (const UserError&) {
    return false;
  }
  return check(*tokenizer);
}

bool check_sentencepiece(std::string_view file) {
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = Tokenizer::from_sentencepiece(file, "input");
  } catch (const UserError&) {
    return false;
  }
  return check(*tokenizer);
}

}  // namespace lockstep::testing

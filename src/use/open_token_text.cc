#include "use/open_token_text.h"

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

constexpr int64_t kBytes = 256;

class TokenizerText final : public TokenText {
 public:
  TokenizerText(const std::string& path, int64_t vocab)
      : path_(path), vocab_(vocab), tokenizer_(Tokenizer::open(path)) {
    restart();
  }

  std::vector<int32_t> encode(std::string_view prompt) const override {
    std::vector<int32_t> ids = tokenizer_->encode(prompt, true);
    for (const int32_t id : ids)
      if (id >= vocab_)
        throw UserError(
            "{}: token {} of the prompt is beyond the {} of the model; this is the tokenizer of another",
            path_, id, vocab_);
    return ids;
  }
  std::string push(int32_t token) override { return decoder_->push(token); }
  std::string finish() override { return decoder_->finish(); }
  void restart() override { decoder_.emplace(*tokenizer_, true); }

 private:
  std::string path_;
  int64_t vocab_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<StreamDecoder> decoder_;
};

bool has_tokenizer(const std::string& folder) {
  const std::filesystem::path where(folder);
  return std::filesystem::exists(where / "tokenizer.json") ||
         std::filesystem::exists(where / "tokenizer.model");
}

}  // namespace

std::unique_ptr<TokenText> open_token_text(const GeneratingModel& model, const std::string& tokenizer,
                                           bool ids) {
  const int64_t vocab = model.family().vocab;
  if (ids) return make_id_text(vocab);
  if (!tokenizer.empty()) return std::make_unique<TokenizerText>(tokenizer, vocab);
  if (has_tokenizer(model.folder())) return std::make_unique<TokenizerText>(model.folder(), vocab);
  if (vocab == kBytes) return make_byte_text();
  throw UserError(
      "{}: there is no tokenizer in it; name one with --tokenizer, or give numbers of tokens with --ids",
      model.folder());
}

}  // namespace lockstep

// RowTokenizer: texts as rows of tokens for models that read one text at a time, framed as the tokenizer of
// the model's folder does ([CLS] ... [SEP]) and cut at the end where they are too long, the frame kept.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace lockstep {

// What a tokenizer puts before and after a text.
struct TextFrame {
  std::vector<int32_t> before, after;
};
// Throws UserError where it does something else to a text than to frame it.
TextFrame text_frame(const Tokenizer& tokenizer);

// Whether a folder holds a tokenizer.json or a .model file.
bool has_tokenizer(const std::string& folder);

// A hash of the files of a tokenizer, a folder or a file: their contents, not where they lie.
std::string tokenizer_fingerprint(const std::string& path);

class RowTokenizer {
 public:
  RowTokenizer(std::shared_ptr<const Tokenizer> tokenizer, std::string fingerprint);
  // Of a folder or a file. Throws UserError.
  static std::shared_ptr<const RowTokenizer> open(const std::string& path);

  // Appends at most this many tokens, which must be more than the frame has.
  void encode(std::string_view text, int64_t most, std::vector<int32_t>& ids) const;
  // What fills a row up: the tokenizer's token for it, or else the one that ends texts, or 0.
  int32_t pad() const { return pad_; }
  int64_t frame_tokens() const { return std::ssize(frame_.before) + std::ssize(frame_.after); }
  int64_t vocab_size() const { return tokenizer_->vocab_size(); }
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  TextFrame frame_;
  int32_t pad_ = 0;
  std::string fingerprint_;
};

}  // namespace lockstep

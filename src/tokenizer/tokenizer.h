// Text to token ids and back, as the tokenizer files of published models say.
//
// A tokenizer.json gives the ids that the reference (the `tokenizers` library, Tokenizer.from_file) gives, a
// SentencePiece .model those of `sentencepiece`: id for id on any text. What a file asks for and Lockstep
// does not have is refused by name when the file is opened, never approximated. Truncation and padding of a
// tokenizer.json are left to the caller.
//
// All const members may be called from several threads at once; no result depends on what was encoded before.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class ThreadPool;

// Two texts encoded as one, for sentence pairs.
struct PairIds {
  std::vector<int32_t> ids;
  std::vector<int32_t>
      types;  // of each id: 0 for the first text, 1 for the second, as the file's template says
};

class Tokenizer {
 public:
  // A tokenizer.json, a SentencePiece .model, or a folder that holds one of them (tokenizer.json is
  // preferred). A tokenizer_config.json beside it names the tokens that begin, end and pad a text.
  static std::unique_ptr<Tokenizer> open(const std::string& path);
  // The same from bytes; `where` names them in errors.
  static std::unique_ptr<Tokenizer> from_json(std::string_view text, const std::string& where);
  static std::unique_ptr<Tokenizer> from_sentencepiece(std::string_view bytes, const std::string& where);
  virtual ~Tokenizer() = default;

  // With special_tokens the text is framed as the model expects it (<s> ... </s>, [CLS] ... [SEP]). Special
  // tokens written in the text are recognised either way by a tokenizer.json. Bytes that are no UTF-8 count
  // as U+FFFD.
  std::vector<int32_t> encode(std::string_view text, bool special_tokens) const;
  // The same, appended.
  virtual void encode_to(std::string_view text, bool special_tokens, std::vector<int32_t>& ids) const = 0;
  virtual PairIds encode_pair(std::string_view first, std::string_view second, bool special_tokens) const = 0;
  // Every text on its own, over the threads of the pool; in the order of the texts.
  std::vector<std::vector<int32_t>> encode_batch(std::span<const std::string_view> texts, bool special_tokens,
                                                 ThreadPool& pool) const;

  // Ids that the vocabulary does not have are left out, as the reference does.
  virtual std::string decode(std::span<const int32_t> ids, bool skip_special) const = 0;

  virtual std::optional<int32_t> id_of(std::string_view token) const = 0;
  // As the file spells it, which is not what it decodes to (a space is written "\u0120" or "\u2581").
  virtual std::optional<std::string> token_of(int32_t id) const = 0;
  virtual bool is_special(int32_t id) const = 0;
  // One more than the highest id, added tokens included.
  virtual int64_t vocab_size() const = 0;

  // By tokenizer_config.json, else by the .model file; none where neither says.
  std::optional<int32_t> bos() const { return bos_; }
  std::optional<int32_t> eos() const { return eos_; }
  std::optional<int32_t> pad() const { return pad_; }
  std::optional<int32_t> unk() const { return unk_; }

 protected:
  // What a tokenizer_config.json says.
  void read_config(std::string_view text, const std::string& where);
  virtual void frame(bool bos, bool eos);

  std::optional<int32_t> bos_, eos_, pad_, unk_;
};

// Text of ids that come one at a time, as it becomes final: a character whose bytes are spread over several
// tokens is held until it is whole.
class StreamDecoder {
 public:
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}

  // What can be shown now that this id has come; often empty.
  std::string push(int32_t id);
  // What was held back; incomplete characters come out as U+FFFD.
  std::string finish();

 private:
  std::string decoded() const { return tokenizer_.decode(ids_, skip_special_); }

  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::vector<int32_t> ids_;  // the last ones shown, for the context, and those not yet shown
  size_t context_ = 0;        // how many of them were shown
  std::string shown_;         // what these decode to
};

}  // namespace lockstep

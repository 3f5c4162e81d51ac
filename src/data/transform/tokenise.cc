// tokenise: text as a row of numbers, one for each byte: the vocabulary that needs no file. Rows are as long
// as their texts; pad makes them equally long.
#include "base/error.h"
#include "chat/row_tokenizer.h"
#include "data/transform/column_transform.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

class Tokenise : public ColumnTransform {
 public:
  explicit Tokenise(const TransformOptions& options) : Tokenise(TransformSettings(options)) {}

  // Where a tokenizer lies does not matter, but what it holds.
  std::string text() const override {
    return tokenizer_ ? fmt::format("tokenise 1 {} as {} tokenizer {}", fmt::join(from(), ","),
                                    fmt::join(to(), ","), tokenizer_->fingerprint())
                      : ColumnTransform::text();
  }

 protected:
  BlockField made(size_t, const BlockField&) const override { return {{}, ValueType::kI32, kVarying}; }

  // A missing text has no tokens but the first, or those that frame it.
  void make(size_t, const BlockColumn& from, ColumnBlock& block, BlockColumn& to) const override {
    std::vector<int32_t> tokens;
    for_each_text(from, static_cast<size_t>(block.records), [&](size_t, std::string_view text) {
      if (tokenizer_) {
        tokenizer_->encode(text, kLongest, tokens);
        to.ends.push_back(static_cast<int64_t>(tokens.size()));
        return;
      }
      if (first_ >= 0) tokens.push_back(static_cast<int32_t>(first_));
      for (const char c : text)
        tokens.push_back(static_cast<int32_t>(static_cast<unsigned char>(c) + shift_));
      to.ends.push_back(static_cast<int64_t>(tokens.size()));
    });
    to.width = kVarying;
    to.values = std::move(tokens);
  }

 private:
  explicit Tokenise(TransformSettings settings)
      : ColumnTransform(settings, 1, Wanted::kText),
        shift_(settings.whole("shift", 0, 1 << 30, 0)),
        first_(settings.whole("first", 0, 1 << 30, -1)) {
    const auto path = settings.optional_word("tokenizer");
    const std::string method = path ? settings.choice("method", {"tokenizer", "bytes"})
                                    : settings.choice("method", {"bytes", "tokenizer"});
    settings.finish();
    if (method == "bytes") return;
    if (!path)
      throw UserError(
          "tokenise: method tokenizer needs one; name a model's folder as tokenizer, or in the job as "
          "data.tokenizer");
    if (shift_ != 0 || first_ >= 0)
      throw UserError("tokenise: shift and first are for bytes; a tokenizer has numbers of its own");
    tokenizer_ = RowTokenizer::open(*path);
  }

  static constexpr int64_t kLongest = 1 << 24;

  int64_t shift_, first_;  // first: -1 for none
  std::shared_ptr<const RowTokenizer> tokenizer_;
};

constexpr TransformSetting kSettings[] = {
    kColumnsSetting,
    kAsSetting,
    {"method", "`bytes`: a token for each byte; `tokenizer`: those of a tokenizer, with its special tokens",
     "bytes; `tokenizer` where there is one"},
    {"tokenizer", "a model's folder, a tokenizer.json or a .model file",
     "data.tokenizer, or that of model.hf"},
    {"shift", "added to every byte, to leave numbers for other uses", "0"},
    {"first", "a token that opens every text", "none"},
};

}  // namespace

constinit const TransformEntry kTokeniseTransform{
    "tokenise",
    "Text as tokens: its bytes, or what a tokenizer makes of it. `pad` makes a fixed number of them.",
    "{name: tokenise, columns: [subject], shift: 1}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Tokenise>(options);
    }};

}  // namespace lockstep

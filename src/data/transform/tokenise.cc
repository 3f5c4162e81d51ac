// tokenise: text as a row of numbers, one for each byte: the vocabulary that needs no file. Rows are as long
// as their texts; pad makes them equally long.
#include "data/transform/column_transform.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

class Tokenise : public ColumnTransform {
 public:
  explicit Tokenise(const TransformOptions& options) : Tokenise(TransformSettings(options)) {}

 protected:
  BlockField made(size_t, const BlockField&) const override { return {{}, ValueType::kI32, kVarying}; }

  // A missing text has no tokens but the first.
  void make(size_t, const BlockColumn& from, ColumnBlock& block, BlockColumn& to) const override {
    std::vector<int32_t> tokens;
    for_each_text(from, static_cast<size_t>(block.records), [&](size_t, std::string_view text) {
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
    settings.choice("method", {"bytes"});
    settings.finish();
  }

  int64_t shift_, first_;  // first: -1 for none
};

constexpr TransformSetting kSettings[] = {
    kColumnsSetting,
    kAsSetting,
    {"method", "`bytes`: a token for each byte", "bytes"},
    {"shift", "added to every byte, to leave numbers for other uses", "0"},
    {"first", "a token that opens every text", "none"},
};

}  // namespace

constinit const TransformEntry kTokeniseTransform{
    "tokenise", "Text as tokens, as many as it has bytes. `pad` makes a fixed number of them.",
    "{name: tokenise, columns: [subject], shift: 1}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Tokenise>(options);
    }};

}  // namespace lockstep

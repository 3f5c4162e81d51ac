// pad: rows of tokens made equally long: longer ones are cut at the end, shorter ones filled up; and a column
// that says which positions hold a token.
#include <algorithm>

#include "base/error.h"
#include "data/transform/column_transform.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

class Pad : public ColumnTransform {
 public:
  explicit Pad(const TransformOptions& options) : Pad(TransformSettings(options)) {}

  std::vector<std::string> makes() const override {
    std::vector<std::string> names = to();
    for (const std::string& name : to()) names.push_back(visible(name));
    return names;
  }
  std::vector<BlockField> output(const std::vector<BlockField>& input) const override {
    std::vector<BlockField> fields = ColumnTransform::output(input);
    for (const std::string& name : to()) put_field(fields, {visible(name), ValueType::kU8, length_});
    return fields;
  }
  void apply(const BlockPlace& place, ColumnBlock& block) const override {
    std::vector<BlockColumn> marks;
    const auto length = static_cast<size_t>(length_);
    for (size_t i = 0; i < from().size(); ++i) {
      const BlockColumn& column = block.column(from()[i]);
      std::vector<uint8_t> shown(static_cast<size_t>(block.records) * length);
      for (size_t r = 0; r < static_cast<size_t>(block.records); ++r)
        std::fill_n(shown.begin() + static_cast<int64_t>(r * length), row_of(column, r).size(), uint8_t{1});
      marks.push_back({visible(to()[i]), length_, std::move(shown)});
    }
    ColumnTransform::apply(place, block);
    for (BlockColumn& column : marks) put_column(block, std::move(column));
  }

 protected:
  BlockField made(size_t, const BlockField&) const override { return {{}, ValueType::kI32, length_}; }

  void make(size_t, const BlockColumn& from, ColumnBlock& block, BlockColumn& to) const override {
    const auto length = static_cast<size_t>(length_);
    std::vector<int32_t> tokens(static_cast<size_t>(block.records) * length, static_cast<int32_t>(with_));
    for (size_t r = 0; r < static_cast<size_t>(block.records); ++r) {
      const std::span<const int32_t> row = row_of(from, r);
      std::copy(row.begin(), row.end(), tokens.begin() + static_cast<int64_t>(r * length));
    }
    to.width = length_;
    to.values = std::move(tokens);
  }

 private:
  explicit Pad(TransformSettings settings)
      : ColumnTransform(settings, 1, Wanted::kTokens),
        length_(settings.whole("length", 2, 1 << 24)),
        with_(settings.whole("with", 0, 1 << 30, 0)) {
    settings.finish();
  }

  static std::string visible(const std::string& name) { return name + "_visible"; }

  // The tokens of a record that there is room for.
  std::span<const int32_t> row_of(const BlockColumn& column, size_t record) const {
    const bool varying = column.width == kVarying;
    const int64_t begin = !varying      ? static_cast<int64_t>(record) * column.width
                          : record == 0 ? 0
                                        : column.ends[record - 1];
    const int64_t end = varying ? column.ends[record] : begin + column.width;
    return std::span(column.as<int32_t>())
        .subspan(static_cast<size_t>(begin), static_cast<size_t>(std::min(end - begin, length_)));
  }

  int64_t length_, with_;
};

constexpr TransformSetting kSettings[] = {
    kColumnsSetting,
    kAsSetting,
    {"length", "tokens of every row; longer ones are cut at the end", ""},
    {"with", "the token that fills shorter rows up", "0"},
};

}  // namespace

constinit const TransformEntry kPadTransform{
    "pad",
    "Rows of tokens made equally long, and NAME`_visible`, 1 where a position holds a token and 0 where it "
    "was filled up.",
    "{name: pad, columns: [subject], length: 64}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Pad>(options);
    }};

}  // namespace lockstep

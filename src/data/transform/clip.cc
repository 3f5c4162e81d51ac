// clip: numbers below `low` become `low`, those above `high` become `high`. Missing ones stay missing.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "data/transform/column_transform.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

class Clip : public ColumnTransform {
 public:
  explicit Clip(const TransformOptions& options) : Clip(TransformSettings(options)) {}

 protected:
  BlockField made(size_t, const BlockField& from) const override {
    return {.name = {}, .type = ValueType::kF64, .scaled = from.scaled};
  }

  void make(size_t, const BlockColumn& from, ColumnBlock&, BlockColumn& to) const override {
    std::vector<double> numbers;
    numbers_of(from, numbers);
    for (double& x : numbers) x = std::clamp(x, low_, high_);
    to.values = std::move(numbers);
    to.missing = from.missing;
  }

 private:
  explicit Clip(TransformSettings settings)
      : ColumnTransform(settings, 2, Wanted::kNumber),
        low_(settings.optional_number("low").value_or(-std::numeric_limits<double>::infinity())),
        high_(settings.optional_number("high").value_or(std::numeric_limits<double>::infinity())) {
    settings.finish();
    if (!(low_ <= high_)) throw UserError("transform clip: low {} is above high {}", low_, high_);
  }

  double low_, high_;
};

constexpr TransformSetting kSettings[] = {
    kColumnsSetting,
    kAsSetting,
    {"low", "the least number", "there is none"},
    {"high", "the greatest number", "there is none"},
};

}  // namespace

constinit const TransformEntry kClipTransform{
    "clip", "Numbers below `low` become `low`, those above `high` become `high`. Missing ones stay missing.",
    "{name: clip, columns: [amount], high: 5000}", kSettings,
    [](const TransformOptions& options) -> std::unique_ptr<Transform> {
      return std::make_unique<Clip>(options);
    }};

}  // namespace lockstep

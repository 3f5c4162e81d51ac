#include "data/transform/clip.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "data/transform/settings.h"

namespace lockstep {
namespace {

class Clip : public Transform {
 public:
  explicit Clip(const TransformOptions& options) {
    TransformSettings settings(options);
    columns_ = settings.list("columns");
    low_ = settings.optional_number("low").value_or(low_);
    high_ = settings.optional_number("high").value_or(high_);
    settings.finish();
    if (!(low_ <= high_)) throw UserError("transform clip: low {} is above high {}", low_, high_);
  }

  std::string text() const override {
    return fmt::format("clip [{}] {} {}", fmt::join(columns_, ","), low_, high_);
  }

  std::vector<BlockField> output(const std::vector<BlockField>& input) const override {
    for (const std::string& name : columns_)
      if (input[index_of(input, name)].type == ValueType::kBytes)
        throw UserError("transform clip: column '{}' holds text, not numbers", name);
    return input;
  }

  void apply(const BlockPlace&, ColumnBlock& block) const override {
    for (const std::string& name : columns_)
      std::visit(
          [this](auto& values) {
            using T = typename std::decay_t<decltype(values)>::value_type;
            if constexpr (!std::is_same_v<T, std::string_view>)
              for (T& value : values)
                value = static_cast<T>(std::clamp(static_cast<double>(value), low_, high_));
          },
          block.column(name).values);
  }

 private:
  std::vector<std::string> columns_;
  double low_ = -std::numeric_limits<double>::infinity();
  double high_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::unique_ptr<Transform> make_clip(const TransformOptions& options) {
  return std::make_unique<Clip>(options);
}

}  // namespace lockstep

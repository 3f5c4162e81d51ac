#include "job/field.h"

#include <fmt/format.h>

#include <cmath>

namespace lockstep {
namespace {

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return fmt::format("{}", static_cast<int64_t>(value));
  return fmt::format("{}", value);
}

template <typename... Slots>
bool holds_any(const Slot& slot) {
  return (std::holds_alternative<Slots>(slot) || ...);
}

}  // namespace

FieldType Field::type() const {
  if (bytes_) return FieldType::kBytes;
  if (holds_any<SlotOf<int64_t>, SlotOf<std::optional<int64_t>>>(slot_)) return FieldType::kInt;
  if (holds_any<SlotOf<double>, SlotOf<std::optional<double>>>(slot_)) return FieldType::kNumber;
  if (holds_any<SlotOf<bool>>(slot_)) return FieldType::kFlag;
  if (holds_any<SlotOf<std::string>>(slot_)) return FieldType::kText;
  if (holds_any<SlotOf<std::vector<std::string>>>(slot_)) return FieldType::kTexts;
  if (holds_any<SlotOf<std::vector<int64_t>>>(slot_)) return FieldType::kInts;
  if (holds_any<SlotOf<std::vector<double>>>(slot_)) return FieldType::kNumbers;
  if (holds_any<SlotOf<std::vector<TransformSpec>>>(slot_)) return FieldType::kTransforms;
  if (holds_any<SlotOf<std::vector<WeightChange>>>(slot_)) return FieldType::kWeightChanges;
  if (holds_any<SlotOf<ClassWeightsSpec>>(slot_)) return FieldType::kClassWeights;
  if (holds_any<SlotOf<std::array<double, 2>>>(slot_)) return FieldType::kPair;
  if (holds_any<SlotOf<StepSpan>, SlotOf<std::optional<StepSpan>>>(slot_)) return FieldType::kSpan;
  if (holds_any<ChoiceSlot>(slot_)) return FieldType::kChoice;
  return FieldType::kAny;
}

std::span<const std::string_view> Field::choices() const {
  const ChoiceSlot* choice = std::get_if<ChoiceSlot>(&slot_);
  return choice != nullptr ? choice->names : std::span<const std::string_view>{};
}

bool Field::in_range(double value) const {
  return (least_excluded_ ? value > least_ : value >= least_) &&
         (most_excluded_ ? value < most_ : value <= most_);
}

std::string Field::range() const {
  std::string text;
  if (std::isfinite(least_))
    text = fmt::format("{} {}", least_excluded_ ? "above" : "at least", number_text(least_));
  if (std::isfinite(most_))
    text += fmt::format("{}{} {}", text.empty() ? "" : " and ", most_excluded_ ? "below" : "at most",
                        number_text(most_));
  return text;
}

std::string Field::expectation() const {
  const std::string limits = range().empty() ? "" : " " + range();
  const std::string or_auto = auto_ ? ", or auto" : "";
  switch (type()) {
    case FieldType::kAny: return "anything";
    case FieldType::kInt: return fmt::format("a whole number{}{}", limits, or_auto);
    case FieldType::kNumber: return fmt::format("a number{}", limits);
    case FieldType::kFlag: return "true or false";
    case FieldType::kText: return "text";
    case FieldType::kTexts: return "text or a list of texts";
    case FieldType::kInts: return fmt::format("a list of whole numbers, each{}", limits);
    case FieldType::kNumbers: return fmt::format("a list of numbers, each{}", limits);
    case FieldType::kTransforms: return "a list of transforms, each a map with a name and its settings";
    case FieldType::kWeightChanges:
      return fmt::format("a list of maps, each with at, a number of samples, and weights, each{}", limits);
    case FieldType::kClassWeights:
      return fmt::format("balanced, or a map from labels to their weights, each{}", limits);
    case FieldType::kPair: return fmt::format("a list of two numbers, each{}", limits);
    case FieldType::kSpan:
      return "steps such as 200, a share of the run such as 5%, or samples such as 10000 samples";
    case FieldType::kChoice: return fmt::format("{}", fmt::join(choices(), ", "));
    case FieldType::kBytes: return fmt::format("bytes with a unit such as 512MiB or 16GiB{}", or_auto);
  }
  return {};
}

std::string Field::sample() const {
  if (!example_.empty()) return std::string(example_);
  if (!fallback_.empty()) return std::string(fallback_);
  for (const auto& [value, fallback] : cases_)
    if (!fallback.empty()) return std::string(fallback);
  if (!choices().empty()) return std::string(choices().front());
  return number_text(std::isfinite(least_) ? least_ + 1 : 1);
}

}  // namespace lockstep

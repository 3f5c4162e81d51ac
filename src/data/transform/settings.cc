#include "data/transform/settings.h"

#include "base/error.h"
#include "base/nearest.h"
#include "data/csv_encoding.h"

namespace lockstep {

const std::vector<std::string>* TransformSettings::find(std::string_view key) {
  known_.emplace(key);
  const auto found = options_.settings.find(std::string(key));
  return found == options_.settings.end() ? nullptr : &found->second;
}

const std::vector<std::string>& TransformSettings::list(std::string_view key) {
  const auto* values = find(key);
  if (values == nullptr || values->empty())
    throw UserError("transform {} needs {}: at least one value", options_.name, key);
  return *values;
}

std::string TransformSettings::word(std::string_view key) {
  const auto& values = list(key);
  if (values.size() != 1)
    throw UserError("transform {}: {} takes one value, not {}", options_.name, key, values.size());
  return values[0];
}

double TransformSettings::number(std::string_view key) {
  const std::string text = word(key);
  const auto value = parse_number(text);
  if (!value) throw UserError("transform {}: {} is '{}'; write a number", options_.name, key, text);
  return *value;
}

std::optional<double> TransformSettings::optional_number(std::string_view key) {
  if (find(key) == nullptr) return {};
  return number(key);
}

void TransformSettings::finish() const {
  const std::vector<std::string_view> known(known_.begin(), known_.end());
  for (const auto& [key, values] : options_.settings)
    if (!known_.contains(key))
      throw UserError("transform {} has no setting '{}'; {}", options_.name, key, suggestion(key, known));
}

}  // namespace lockstep

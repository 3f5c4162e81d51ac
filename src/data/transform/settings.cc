#include "data/transform/settings.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "data/format/value_text.h"
#include "data/transform/table_encoding.h"

namespace lockstep {

std::string TransformSettings::text(int version) const {
  std::string text = fmt::format("{} {}", options_.name, version);
  for (const auto& [key, values] : options_.settings) {
    text += fmt::format(" {}=", key);
    // The length keeps [a, b] apart from a column that is called "a,b".
    for (const std::string& value : values) text += fmt::format("{}:{},", value.size(), value);
  }
  return text;
}

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

std::vector<std::string> TransformSettings::optional_list(std::string_view key) {
  const auto* values = find(key);
  return values == nullptr ? std::vector<std::string>{} : list(key);
}

std::string TransformSettings::word(std::string_view key) {
  const auto& values = list(key);
  if (values.size() != 1)
    throw UserError("transform {}: {} takes one value, not {}", options_.name, key, values.size());
  return values[0];
}

std::optional<std::string> TransformSettings::optional_word(std::string_view key) {
  if (find(key) == nullptr) return {};
  return word(key);
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

std::vector<double> TransformSettings::optional_numbers(std::string_view key) {
  std::vector<double> numbers;
  for (const std::string& text : optional_list(key)) {
    const auto value = parse_number(text);
    if (!value) throw UserError("transform {}: {} has '{}'; write numbers", options_.name, key, text);
    numbers.push_back(*value);
  }
  return numbers;
}

int64_t TransformSettings::whole(std::string_view key, int64_t least, int64_t most,
                                 std::optional<int64_t> otherwise) {
  if (otherwise && find(key) == nullptr) return *otherwise;
  const double value = number(key);
  if (value != std::floor(value) || value < static_cast<double>(least) || value > static_cast<double>(most))
    throw UserError("transform {}: {} is {}; write a whole number from {} to {}", options_.name, key, value,
                    least, most);
  return static_cast<int64_t>(value);
}

std::string TransformSettings::choice(std::string_view key, std::initializer_list<std::string_view> words) {
  std::string word = optional_word(key).value_or(std::string(*words.begin()));
  if (std::find(words.begin(), words.end(), word) == words.end())
    throw UserError("transform {}: {} is '{}'; write {}", options_.name, key, word, fmt::join(words, " or "));
  return word;
}

bool TransformSettings::yes(std::string_view key) {
  // YAML writes both ways.
  const std::string word = choice(key, {"no", "yes", "false", "true"});
  return word == "yes" || word == "true";
}

void TransformSettings::finish() const {
  const TransformEntry* entry = find_transform(options_.name);
  LOCKSTEP_CHECK(entry != nullptr, "transform {} is not registered", options_.name);
  LOCKSTEP_CHECK(entry->settings.size() == known_.size(), "transform {} describes {} settings and reads {}",
                 options_.name, entry->settings.size(), known_.size());
  for (const TransformSetting& setting : entry->settings)
    LOCKSTEP_CHECK(known_.contains(setting.name), "transform {} does not read {}", options_.name,
                   setting.name);
  const std::vector<std::string_view> known(known_.begin(), known_.end());
  for (const auto& [key, values] : options_.settings)
    if (!known_.contains(key))
      throw UserError("transform {} has no setting '{}'; {}", options_.name, key, suggestion(key, known));
}

}  // namespace lockstep

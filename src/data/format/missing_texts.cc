#include "data/format/missing_texts.h"

#include <algorithm>

#include "data/format/value_text.h"

namespace lockstep {

MissingTexts::MissingTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {
  for (const std::string& text : texts_) {
    if (!text.empty()) begins_[static_cast<unsigned char>(text[0])] = true;
    if (const auto number = parse_number(text)) numbers_.push_back(*number);
  }
}

bool MissingTexts::listed(std::string_view text) const {
  return std::find(texts_.begin(), texts_.end(), text) != texts_.end();
}

bool MissingTexts::has_for_number(std::string_view text) const {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return true;
  return has(text.substr(first, text.find_last_not_of(' ') + 1 - first));
}

void mark_missing_numbers(const MissingTexts& texts, ColumnBlock& block) {
  const auto is_missing = [&](double value) {
    return std::find(texts.numbers().begin(), texts.numbers().end(), value) != texts.numbers().end();
  };
  for (BlockColumn& column : block.columns)
    std::visit(
        [&](auto& values) {
          using T = typename std::decay_t<decltype(values)>::value_type;
          if constexpr (std::is_arithmetic_v<T>)
            for (size_t r = 0; column.width == 1 && r < values.size(); ++r) {
              if (!is_missing(static_cast<double>(values[r]))) continue;
              column.missing.resize(values.size());
              column.missing[r] = 1;
              values[r] = T{};
            }
        },
        column.values);
}

const MissingTexts& usual_missing_texts() {
  static const MissingTexts usual(
      {"NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None", "-", "?"});
  return usual;
}

const MissingTexts& no_missing_texts() {
  static const MissingTexts none({});
  return none;
}

}  // namespace lockstep

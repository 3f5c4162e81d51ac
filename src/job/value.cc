#include "job/value.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/nearest.h"
#include "job/numbers.h"
#include "job/paths.h"

namespace lockstep {
namespace {

// Reads one value of a field; each overload stores into one kind of slot.
class Reader {
 public:
  Reader(const Field& field, const YamlNode& value, const Blame& blame, JobSpec& spec)
      : field_(field), value_(value), blame_(blame), spec_(spec) {}

  void operator()(NoSlot) const {}
  void operator()(SlotOf<int64_t> slot) const { *slot(spec_) = whole(value_); }
  void operator()(SlotOf<std::optional<int64_t>> slot) const {
    *slot(spec_) = field_.has_auto() && is_word(value_, "auto") ? std::nullopt : std::optional(whole(value_));
  }
  void operator()(SlotOf<double> slot) const { *slot(spec_) = number(value_); }
  void operator()(SlotOf<std::optional<double>> slot) const { *slot(spec_) = number(value_); }
  void operator()(SlotOf<bool> slot) const {
    if (!is_word(value_, "true") && !is_word(value_, "false")) wrong_type(value_);
    *slot(spec_) = value_.text == "true";
  }
  void operator()(SlotOf<std::string> slot) const { *slot(spec_) = text_or_path(value_); }
  void operator()(SlotOf<std::vector<std::string>> slot) const {
    std::vector<std::string>& list = *slot(spec_);
    list.clear();
    if (!value_.is_list()) {
      list.push_back(text_or_path(value_));
      return;
    }
    for (const YamlNode& item : value_.items) list.push_back(text_or_path(item));
  }
  void operator()(SlotOf<std::vector<int64_t>> slot) const {
    std::vector<int64_t>& list = *slot(spec_);
    if (!value_.is_list()) wrong_type(value_);
    list.clear();
    for (const YamlNode& item : value_.items) list.push_back(whole(item));
  }
  void operator()(SlotOf<std::vector<double>> slot) const {
    std::vector<double>& list = *slot(spec_);
    if (!value_.is_list()) wrong_type(value_);
    list.clear();
    for (const YamlNode& item : value_.items) list.push_back(number(item));
  }
  void operator()(SlotOf<std::vector<TransformSpec>> slot) const {
    std::vector<TransformSpec>& list = *slot(spec_);
    if (!value_.is_list()) wrong_type(value_);
    list.clear();
    for (const YamlNode& item : value_.items) list.push_back(transform(item));
  }
  void operator()(SlotOf<std::vector<WeightChange>> slot) const {
    std::vector<WeightChange>& list = *slot(spec_);
    if (!value_.is_list()) wrong_type(value_);
    list.clear();
    for (const YamlNode& item : value_.items) list.push_back(weight_change(item));
  }
  void operator()(SlotOf<ClassWeightsSpec> slot) const {
    ClassWeightsSpec& weights = *slot(spec_);
    weights = {};
    if (is_word(value_, "balanced")) {
      weights.balanced = true;
      return;
    }
    if (!value_.is_map() || value_.entries.empty()) wrong_type(value_);
    for (const YamlNode::Entry& entry : value_.entries)
      weights.of.emplace_back(entry.key, number(entry.value));
  }
  void operator()(SlotOf<std::array<double, 2>> slot) const {
    if (!value_.is_list() || value_.items.size() != 2) wrong_type(value_);
    *slot(spec_) = {number(value_.items[0]), number(value_.items[1])};
  }
  void operator()(SlotOf<StepSpan> slot) const { *slot(spec_) = span(); }
  void operator()(SlotOf<std::optional<StepSpan>> slot) const { *slot(spec_) = span(); }
  void operator()(const ChoiceSlot& choice) const {
    std::string name = value_.is_scalar() ? value_.text : "";
    for (const auto& [word, meant] : field_.other_words())
      if (is_word(value_, word)) name = meant;
    for (size_t i = 0; i < choice.names.size(); ++i)
      if (choice.names[i] == name) {
        choice.set(spec_, i);
        return;
      }
    if (!value_.is_scalar()) wrong_type(value_);
    throw UserError("{}: {} is {}, which is not one of its choices; write {}", blame_.place, blame_.key,
                    describe(value_), field_.expectation());
  }

 private:
  static bool is_word(const YamlNode& value, std::string_view word) {
    return value.is_scalar() && !value.quoted && value.text == word;
  }

  [[noreturn]] void wrong_type(const YamlNode& value) const {
    const std::string expected = field_.expectation();
    const std::string sample = field_.choices().empty() && field_.type() != FieldType::kFlag
                                   ? fmt::format(", for example {}", field_.sample())
                                   : "";
    throw UserError("{}: {} is {}; write {}{}", blame_.place, blame_.key, describe(value), expected, sample);
  }

  void need_unquoted_scalar(const YamlNode& value) const {
    if (!value.is_scalar()) wrong_type(value);
    // The JSON of an API writes 64-bit numbers as strings.
    if (value.quoted && !field_.path().starts_with("workerPoolSpecs"))
      throw UserError("{}: {} is the text \"{}\"; write {} without quotes", blame_.place, blame_.key,
                      clipped(value.text),
                      read_number(value.text) ? clipped(value.text) : field_.expectation());
  }

  void need_range(double amount, const YamlNode& value) const {
    if (field_.in_range(amount)) return;
    throw UserError("{}: {} is {}, but must be {}; write for example {}", blame_.place, blame_.key,
                    clipped(value.text), field_.range(), field_.sample());
  }

  int64_t whole(const YamlNode& value) const {
    need_unquoted_scalar(value);
    if (field_.type() == FieldType::kBytes) return bytes(value);
    const std::optional<int64_t> result = read_whole(value.text);
    if (!result) {
      const std::optional<double> near = read_number(value.text);
      if (near && std::isfinite(*near)) need_range(*near, value);
      if (near && std::abs(*near) < 1e15 && *near != std::floor(*near))
        throw UserError("{}: {} is {}, which is not whole; write {:.0f} or {:.0f}", blame_.place, blame_.key,
                        value.text, std::floor(*near), std::ceil(*near));
      wrong_type(value);
    }
    need_range(static_cast<double>(*result), value);
    return *result;
  }

  int64_t bytes(const YamlNode& value) const {
    const std::optional<int64_t> result = read_bytes(value.text);
    if (!result) wrong_type(value);
    need_range(static_cast<double>(*result), value);
    return *result;
  }

  double number(const YamlNode& value) const {
    need_unquoted_scalar(value);
    const std::optional<double> result = read_number(value.text);
    if (!result) wrong_type(value);
    if (!std::isfinite(*result))
      throw UserError("{}: {} is {}, which is not finite; write {}, for example {}", blame_.place, blame_.key,
                      clipped(value.text), field_.expectation(), field_.sample());
    need_range(*result, value);
    return *result;
  }

  std::string text(const YamlNode& value) const {
    if (!value.is_scalar()) wrong_type(value);
    if (value.text.find_first_of("\n\r") != std::string::npos)
      throw UserError("{}: {} spans several lines; write it on one", blame_.place, blame_.key);
    return value.text;
  }

  std::string text_or_path(const YamlNode& value) const {
    std::string found = text(value);
    if (!field_.is_path()) return found;
    try {
      return expanded_path(found);
    } catch (const UserError& error) {
      throw UserError("{}: {} is {}", blame_.place, blame_.key, error.what());
    }
  }

  TransformSpec transform(const YamlNode& value) const {
    if (!value.is_map()) wrong_type(value);
    TransformSpec transform;
    for (const YamlNode::Entry& entry : value.entries) {
      if (entry.key == "name") {
        transform.name = text(entry.value);
        continue;
      }
      std::vector<std::string> values;
      if (entry.value.is_list())
        for (const YamlNode& item : entry.value.items) values.push_back(text(item));
      else
        values.push_back(text(entry.value));
      transform.settings.emplace_back(entry.key, std::move(values));
    }
    if (transform.name.empty())
      throw UserError("{}: {} has an entry without a name; write for example {}", blame_.place, blame_.key,
                      field_.sample());
    return transform;
  }

  WeightChange weight_change(const YamlNode& value) const {
    if (!value.is_map()) wrong_type(value);
    WeightChange change;
    for (const YamlNode::Entry& entry : value.entries) {
      if (entry.key == "at" && entry.value.is_scalar()) {
        const std::optional<int64_t> at = read_whole(entry.value.text);
        if (!at || *at < 1)
          throw UserError("{}: {} changes at {}; write a number of samples, at least 1", blame_.place,
                          blame_.key, clipped(entry.value.text));
        change.at = *at;
      } else if (entry.key == "weights" && entry.value.is_list()) {
        for (const YamlNode& item : entry.value.items) change.weights.push_back(number(item));
      } else {
        wrong_type(value);
      }
    }
    if (change.at == 0 || change.weights.empty())
      throw UserError("{}: {} has an entry without at or weights; write for example {}", blame_.place,
                      blame_.key, field_.sample());
    return change;
  }

  StepSpan span() const {
    if (!value_.is_scalar()) wrong_type(value_);
    const std::optional<StepSpan> result = read_span(value_.text);
    if (!result) {
      const std::optional<double> near = read_number(value_.text);
      if (near && *near > 0 && *near < 1)
        throw UserError(
            "{}: {} is {}, which is not a whole number of steps; write {:.12g}% for a share of the run",
            blame_.place, blame_.key, value_.text, *near * 100);
      wrong_type(value_);
    }
    need_range(result->amount, value_);
    return *result;
  }

  const Field& field_;
  const YamlNode& value_;
  const Blame& blame_;
  JobSpec& spec_;
};

// Settings are kept as text, so that a number may stand as it was written.
std::string setting_text(const std::string& text) {
  return read_number(text) ? text : quoted_if_needed(text);
}

struct Writer {
  const Field& field;
  const JobSpec& spec;
  template <typename T>
  const T& at(SlotOf<T> slot) const {
    return *slot(const_cast<JobSpec&>(spec));  // slots hand out members; they change nothing themselves
  }
  std::string text_or_path(const std::string& text) const {
    return quoted_if_needed(field.is_path() ? path_text(text) : text);
  }

  std::optional<std::string> operator()(NoSlot) const { return std::nullopt; }
  std::optional<std::string> operator()(SlotOf<int64_t> slot) const { return fmt::format("{}", at(slot)); }
  std::optional<std::string> operator()(SlotOf<std::optional<int64_t>> slot) const {
    return at(slot) ? std::optional(fmt::format("{}", *at(slot))) : std::nullopt;
  }
  std::optional<std::string> operator()(SlotOf<double> slot) const { return fmt::format("{}", at(slot)); }
  std::optional<std::string> operator()(SlotOf<std::optional<double>> slot) const {
    return at(slot) ? std::optional(fmt::format("{}", *at(slot))) : std::nullopt;
  }
  std::optional<std::string> operator()(SlotOf<bool> slot) const { return at(slot) ? "true" : "false"; }
  std::optional<std::string> operator()(SlotOf<std::string> slot) const {
    return at(slot).empty() ? std::nullopt : std::optional(text_or_path(at(slot)));
  }
  std::optional<std::string> operator()(SlotOf<std::vector<std::string>> slot) const {
    if (at(slot).empty()) return std::nullopt;
    std::vector<std::string> items;
    for (const std::string& item : at(slot)) items.push_back(text_or_path(item));
    return items.size() == 1 ? items[0] : fmt::format("[{}]", fmt::join(items, ", "));
  }
  std::optional<std::string> operator()(SlotOf<std::vector<int64_t>> slot) const {
    return fmt::format("[{}]", fmt::join(at(slot), ", "));
  }
  std::optional<std::string> operator()(SlotOf<std::vector<double>> slot) const {
    return at(slot).empty() ? std::nullopt : std::optional(fmt::format("[{}]", fmt::join(at(slot), ", ")));
  }
  std::optional<std::string> operator()(SlotOf<std::vector<TransformSpec>> slot) const {
    if (at(slot).empty()) return std::nullopt;
    std::vector<std::string> entries;
    for (const TransformSpec& transform : at(slot)) {
      std::string entry = fmt::format("{{name: {}", quoted_if_needed(transform.name));
      for (const auto& [key, values] : transform.settings) {
        std::vector<std::string> items;
        for (const std::string& value : values) items.push_back(setting_text(value));
        entry += fmt::format(", {}: {}", setting_text(key),
                             items.size() == 1 ? items[0] : fmt::format("[{}]", fmt::join(items, ", ")));
      }
      entries.push_back(entry + "}");
    }
    return fmt::format("[{}]", fmt::join(entries, ", "));
  }
  std::optional<std::string> operator()(SlotOf<std::vector<WeightChange>> slot) const {
    if (at(slot).empty()) return std::nullopt;
    std::vector<std::string> entries;
    for (const WeightChange& change : at(slot))
      entries.push_back(fmt::format("{{at: {}, weights: [{}]}}", change.at, fmt::join(change.weights, ", ")));
    return fmt::format("[{}]", fmt::join(entries, ", "));
  }
  std::optional<std::string> operator()(SlotOf<ClassWeightsSpec> slot) const {
    if (at(slot).empty()) return std::nullopt;
    if (at(slot).balanced) return "balanced";
    std::vector<std::string> entries;
    for (const auto& [label, weight] : at(slot).of)
      entries.push_back(fmt::format("{}: {}", setting_text(label), weight));
    return fmt::format("{{{}}}", fmt::join(entries, ", "));
  }
  std::optional<std::string> operator()(SlotOf<std::array<double, 2>> slot) const {
    return fmt::format("[{}, {}]", at(slot)[0], at(slot)[1]);
  }
  std::optional<std::string> operator()(SlotOf<StepSpan> slot) const { return to_string(at(slot)); }
  std::optional<std::string> operator()(SlotOf<std::optional<StepSpan>> slot) const {
    return at(slot) ? std::optional(to_string(*at(slot))) : std::nullopt;
  }
  std::optional<std::string> operator()(const ChoiceSlot& choice) const {
    const std::optional<size_t> index = choice.get(spec);
    return index ? std::optional(std::string(choice.names[*index])) : std::nullopt;
  }
};

}  // namespace

void assign_value(const Field& field, const YamlNode& value, const Blame& blame, JobSpec& spec) {
  if (value.is_null() && !field.is_ignored())
    throw UserError("{}: {} has no value; write {}, or remove the line", blame.place, blame.key,
                    field.expectation());
  std::visit(Reader(field, value, blame, spec), field.slot());
}

std::optional<std::string> value_text(const Field& field, const JobSpec& spec) {
  std::optional<std::string> text = std::visit(Writer{field, spec}, field.slot());
  return !text && field.has_auto() ? std::optional<std::string>("auto") : text;
}

std::string quoted_if_needed(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.' || c == '-';
  };
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), is_plain) && text[0] != '-' &&
                     !read_number(text) && text != "true" && text != "false" && text != "null";
  return plain ? text : nlohmann::json(text).dump();
}

}  // namespace lockstep

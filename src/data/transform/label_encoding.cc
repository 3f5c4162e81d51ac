#include "data/transform/label_encoding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/format/value_text.h"
#include "data/transform/column_values.h"
#include "data/transform/transform.h"

namespace lockstep {
namespace {

// Shares of the first labels from which on the others are taken for mistakes: a third class may well be
// rarer than one in ten, but a text among numbers seldom is one.
constexpr double kNearlyAllZeroOne = 0.99;
constexpr double kNearlyAllNumbers = 0.9;

constexpr std::array<std::string_view, 3> kKindNames = {"zero_one", "numbers", "texts"};

bool is_plain(const LabelEncoding& encoding) {
  return encoding.kind == LabelKind::kZeroOne ||
         (encoding.task == LabelTask::kBinary && encoding.classes.empty());
}

template <typename T>
std::optional<double> place_in(const std::vector<T>& sorted, const auto& value) {
  const auto found = std::lower_bound(sorted.begin(), sorted.end(), value);
  if (found == sorted.end() || *found != value) return {};
  return static_cast<double>(found - sorted.begin());
}

// What a label is to the encoding; nothing: it cannot be used.
std::optional<double> value_of(const LabelEncoding& encoding, double number) {
  if (!(std::fabs(number) <= kLargestNumber)) return {};
  if (is_plain(encoding)) return number == 0 || number == 1 ? std::optional(number) : std::nullopt;
  return encoding.numbers.empty() ? std::optional(number) : place_in(encoding.numbers, number);
}

std::optional<double> value_of(const LabelEncoding& encoding, const MissingTexts& missing,
                               std::string_view text) {
  if (is_plain(encoding)) {
    const auto label = parse_label(text);
    return label ? std::optional(static_cast<double>(*label)) : std::nullopt;
  }
  if (missing.has(text)) return {};
  if (encoding.kind == LabelKind::kTexts)
    return encoding.classes.empty() ? std::optional(0.0) : place_in(encoding.classes, text);
  const auto number = parse_number(text);
  return number ? value_of(encoding, *number) : std::nullopt;
}

// Calls take(record, value or nothing, text).
template <typename Take>
void for_each_value(const LabelEncoding& encoding, const BlockColumn& column, size_t records,
                    const Take& take) {
  if (column.type() == ValueType::kBytes || encoding.kind == LabelKind::kTexts)
    return for_each_text(column, records, [&](size_t r, std::string_view text) {
      take(r, value_of(encoding, missing_texts(column), text), text);
    });
  thread_local std::vector<double> room;
  const std::span<const double> numbers = numbers_in(column, room);
  for (size_t r = 0; r < records; ++r) take(r, value_of(encoding, numbers[r]), std::string_view());
}

std::string text_at(const BlockColumn& column, size_t record) {
  if (column.is_missing(record)) return {};
  return std::visit([&](const auto& values) { return fmt::format("{}", values[record]); }, column.values);
}

// In one line of a terminal.
std::string shown(std::string_view text) {
  constexpr size_t kLongest = 40;
  std::string line(text.substr(0, kLongest));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return line;
}

std::string expectation(const LabelEncoding& encoding, std::string_view text, bool missing) {
  if (is_plain(encoding))
    return parse_number(text) ? "0 or 1, as nearly all are; for more classes write model.task: classification"
                              : "0 or 1";
  if (!encoding.classes.empty())
    return fmt::format("one that training records have: {}", list_of_labels(encoding.classes));
  if (encoding.kind == LabelKind::kTexts || missing) return "there";
  return "a number of at most 1e30, as nearly all are; correct it, write data.errors.policy: skip to leave "
         "such records out, or make texts of all of them with the transform cast";
}

// Whether all of a column are 0 or 1, which are then the labels.
bool take_plain(const BlockColumn& column, std::vector<float>& labels) {
  if (!column.missing.empty()) return false;
  return std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_same_v<T, std::string_view>) {
          return false;
        } else {
          bool all = true;
          for (size_t r = 0; r < labels.size(); ++r) {
            labels[r] = static_cast<float>(values[r]);
            all = all && (values[r] == T{0} || values[r] == T{1});
          }
          return all;
        }
      },
      column.values);
}

template <typename Names>
size_t place_among(const Names& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw UserError("'{}' is not one of {}", name, fmt::join(names, ", "));
  return static_cast<size_t>(found - names.begin());
}

LabelEncoding parsed(const nlohmann::json& all) {
  LabelEncoding labels;
  labels.column = all.at("column").get<std::string>();
  labels.task =
      static_cast<LabelTask>(place_among(ChoiceNames<LabelTask>::names, all.at("task").get<std::string>()));
  labels.kind = static_cast<LabelKind>(place_among(kKindNames, all.at("kind").get<std::string>()));
  if (all.contains("weights")) labels.weights = all["weights"].get<std::vector<double>>();
  if (labels.task == LabelTask::kRegression) {
    labels.mean = all.at("mean").get<double>();
    labels.deviation = all.at("deviation").get<double>();
    return labels;
  }
  if (labels.kind == LabelKind::kZeroOne) return labels;
  labels.classes = all.at("classes").get<std::vector<std::string>>();
  for (const std::string& label : labels.classes)
    if (const auto number = parse_number(label); number && labels.kind == LabelKind::kNumbers)
      labels.numbers.push_back(*number);
  return labels;
}

// Places can be looked up, in what is there for each of them.
bool holds_together(const LabelEncoding& labels) {
  if (labels.task == LabelTask::kRegression) return labels.deviation > 0 && labels.weights.empty();
  if (!labels.weights.empty() && labels.weights.size() != labels.names().size()) return false;
  if (labels.task == LabelTask::kBinary && labels.names().size() != 2) return false;
  if (labels.task == LabelTask::kAuto || (labels.kind != LabelKind::kZeroOne && labels.classes.empty()))
    return false;
  if (labels.kind != LabelKind::kNumbers) return std::is_sorted(labels.classes.begin(), labels.classes.end());
  return labels.numbers.size() == labels.classes.size() &&
         std::is_sorted(labels.numbers.begin(), labels.numbers.end());
}

}  // namespace

std::vector<std::string> LabelEncoding::names() const {
  if (task == LabelTask::kRegression) return {};
  return classes.empty() ? std::vector<std::string>{"0", "1"} : classes;
}

std::string LabelEncoding::json() const {
  nlohmann::ordered_json all = {
      {"column", column}, {"task", name_of(task)}, {"kind", kKindNames[static_cast<size_t>(kind)]}};
  if (task == LabelTask::kRegression) {
    all["mean"] = mean;
    all["deviation"] = deviation;
  } else {
    all["classes"] = names();
  }
  if (!weights.empty()) all["weights"] = weights;
  return all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

LabelEncoding labels_from_json(std::string_view text, const std::string& name) {
  try {
    const auto all = nlohmann::json::parse(text);
    LabelEncoding labels = parsed(all);
    // Printed again it must be the same: then nothing was passed over.
    if (holds_together(labels) && nlohmann::json::parse(labels.json()) == all) return labels;
  } catch (const nlohmann::json::exception& error) {
    throw UserError("{}: this does not say what labels mean: {}", name, error.what());
  } catch (const UserError& error) {
    throw UserError("{}: this does not say what labels mean: {}", name, error.what());
  }
  throw UserError("{}: this does not say what labels mean; it was changed after it was written", name);
}

LabelKind kind_of_labels(const BlockColumn& column, size_t records, LabelTask asked) {
  int64_t present = 0, numbers = 0, zero_one = 0;
  for_each_text(column, records, [&](size_t, std::string_view text) {
    if (missing_texts(column).has(text)) return;
    ++present;
    numbers += parse_number(text) ? 1 : 0;
    zero_one += parse_label(text) ? 1 : 0;
  });
  const auto nearly = [&](int64_t some, double share) {
    return static_cast<double>(some) >= share * static_cast<double>(present);
  };
  const bool may_be_binary = asked == LabelTask::kAuto || asked == LabelTask::kBinary;
  if (may_be_binary && nearly(zero_one, kNearlyAllZeroOne)) return LabelKind::kZeroOne;
  if (asked == LabelTask::kRegression || nearly(numbers, kNearlyAllNumbers)) return LabelKind::kNumbers;
  return LabelKind::kTexts;
}

void for_each_label(const LabelEncoding& encoding, const BlockColumn& column, size_t records,
                    const TakeLabel& take) {
  for_each_value(encoding, column, records,
                 [&](size_t r, const std::optional<double>& value, std::string_view text) {
                   if (!value) throw BadValue(r, label_problem(encoding, column, r));
                   take(r, *value, text);
                 });
}

void encode_labels(const LabelEncoding& encoding, const BlockColumn& column, size_t records,
                   std::vector<float>& out) {
  out.resize(records);
  if (is_plain(encoding) && take_plain(column, out)) return;
  const bool regression = encoding.task == LabelTask::kRegression;
  for_each_value(
      encoding, column, records, [&](size_t r, const std::optional<double>& value, std::string_view) {
        if (!value) throw BadValue(r, label_problem(encoding, column, r));
        out[r] = static_cast<float>(regression ? (*value - encoding.mean) / encoding.deviation : *value);
      });
}

void encode_classes(const LabelEncoding& encoding, const BlockColumn& column, size_t records,
                    std::vector<int32_t>& out) {
  out.resize(records);
  for_each_value(encoding, column, records,
                 [&](size_t r, const std::optional<double>& value, std::string_view) {
                   if (!value) throw BadValue(r, label_problem(encoding, column, r));
                   out[r] = static_cast<int32_t>(*value);
                 });
}

std::vector<uint8_t> usable_labels(const LabelEncoding& encoding, const BlockColumn& column, size_t records) {
  std::vector<uint8_t> usable(records);
  for_each_value(
      encoding, column, records,
      [&](size_t r, const std::optional<double>& value, std::string_view) { usable[r] = value ? 1 : 0; });
  return usable;
}

std::string label_problem(const LabelEncoding& encoding, const BlockColumn& column, size_t record) {
  const std::string text = text_at(column, record);
  const bool missing = missing_texts(column).has(text);
  std::string problem = fmt::format("the label '{}' is '{}'; it must be {}", encoding.column, shown(text),
                                    expectation(encoding, text, missing));
  if (missing)
    problem +=
        fmt::format("; to leave such records out, write data.filter: \"{} is not missing\"", encoding.column);
  return problem;
}

std::string list_of_labels(const std::vector<std::string>& labels) {
  constexpr size_t kMostShown = 8;
  std::vector<std::string> some;
  for (size_t i = 0; i < std::min(kMostShown, labels.size()); ++i) some.push_back(shown(labels[i]));
  std::string text = fmt::format("{}", fmt::join(some, ", "));
  if (labels.size() > kMostShown) text += fmt::format(" and {} more", labels.size() - kMostShown);
  return text;
}

std::optional<float> parse_label(std::string_view field) {
  if (field == "0") return 0.0f;
  if (field == "1") return 1.0f;
  if (field == "true" || field == "True" || field == "TRUE") return 1.0f;
  if (field == "false" || field == "False" || field == "FALSE") return 0.0f;
  const auto number = parse_number(field);
  if (!number || (*number != 0.0 && *number != 1.0)) return {};
  return static_cast<float>(*number);
}

}  // namespace lockstep

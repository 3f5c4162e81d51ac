#include "data/transform/table_encoding.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/nearest.h"
#include "base/portable_math.h"
#include "data/format/value_text.h"

namespace lockstep {
namespace {

constexpr double kSkewed = 2.0;
constexpr std::string_view kLabelLine = "label ", kLabelsLine = "labels ", kWeightLine = "weight ",
                           kMeanKey = " mean=";

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void require_column(std::string_view file, const std::vector<std::string>& header, const std::string& name) {
  if (contains(header, name)) return;
  const std::vector<std::string_view> known(header.begin(), header.end());
  throw UserError("{}:1: there is no column '{}'; {}", file, name, suggestion(name, known));
}

ColumnLook look_of(const BlockField& made) {
  if (made.width != 1) return ColumnLook::kIgnored;
  return made.ids > 0 || made.type == ValueType::kBytes ? ColumnLook::kCategorical : ColumnLook::kNumeric;
}

}  // namespace

int64_t TableEncoding::dense() const {
  int64_t count = static_cast<int64_t>(numeric.size());
  for (const NumericColumn& column : numeric) count += column.missing_flag;
  return count;
}

std::string to_text(const TableEncoding& encoding) {
  std::string text = fmt::format("{}{}\n", kLabelLine, encoding.label);
  for (const NumericColumn& c : encoding.numeric)
    text += fmt::format("numeric {} log1p={} flag={} mean={} deviation={} fill={}{}\n", c.name, c.log1p,
                        c.missing_flag, c.mean, c.deviation, c.fill, c.as_is ? " as_is" : "");
  for (const std::string& name : encoding.categorical) {
    const auto ids = encoding.ids.find(name);
    text += ids == encoding.ids.end() ? fmt::format("categorical {} buckets={}\n", name, encoding.buckets)
                                      : fmt::format("categorical {} ids={}\n", name, ids->second);
  }
  if (!encoding.weight.empty())
    text += fmt::format("{}{}{}{}\n", kWeightLine, encoding.weight, kMeanKey, encoding.weight_mean);
  // Labels of 0 and 1 that all count alike need no constants.
  const bool plain = encoding.labels.kind == LabelKind::kZeroOne && encoding.labels.weights.empty();
  if (encoding.labels.task != LabelTask::kAuto && !plain)
    text += fmt::format("{}{}\n", kLabelsLine, encoding.labels.json());
  return text;
}

namespace {

// What follows the beginning of a line, up to its end; nothing where there is no such line.
std::optional<std::string_view> rest_of_line(std::string_view text, std::string_view begin) {
  for (size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const std::string_view rest = text.substr(at + begin.size());
    return rest.substr(0, rest.find('\n'));
  }
  return {};
}

LabelEncoding labels_of(std::string_view text, const std::string& label) {
  LabelEncoding labels{.column = label, .task = LabelTask::kBinary, .kind = LabelKind::kZeroOne};
  if (const auto json = rest_of_line(text, kLabelsLine)) labels = labels_from_json(*json, "the fit");
  labels.column = label;
  return labels;
}

void take_labels(std::string_view text, TableEncoding& encoding) {
  encoding.labels = labels_of(text, encoding.label);
  // Also where it was not asked for: files to evaluate or predict on need not have it.
  const std::string_view line = rest_of_line(text, kWeightLine).value_or("");
  const size_t mean = line.rfind(kMeanKey);
  if (mean == std::string_view::npos) return;
  encoding.weight = line.substr(0, mean);
  encoding.weight_mean = parse_number(line.substr(mean + kMeanKey.size())).value_or(0);
}

}  // namespace

void take_constants(std::string_view text, TableEncoding& encoding) {
  TableEncoding taken = encoding;
  take_labels(text, taken);
  for (NumericColumn& column : taken.numeric) {
    const std::string begin = fmt::format("numeric {} log1p=", column.name);
    const size_t at = text.find(begin);
    std::string_view line = at == std::string_view::npos ? "" : text.substr(at + begin.size());
    line = line.substr(0, line.find('\n'));
    column.log1p = line.starts_with("true");
    column.missing_flag = line.find(" flag=true ") != std::string_view::npos;
    const auto constant = [&](std::string_view key) {
      const size_t found = line.find(key);
      const std::string_view rest = found == std::string_view::npos ? "" : line.substr(found + key.size());
      return parse_number(rest.substr(0, rest.find(' '))).value_or(0);
    };
    column.mean = constant(" mean=");
    column.deviation = constant(" deviation=");
    column.fill = constant(" fill=");
  }
  if (to_text(taken) != text) throw UserError("the constants are not those of this table");
  encoding = std::move(taken);
}

LabelEncoding labels_in(std::string_view text) {
  // The table's own lines come last, and begin with its label.
  const size_t last = text.rfind(fmt::format("\n{}", kLabelLine));
  const std::string_view own = last == std::string_view::npos ? text : text.substr(last + 1);
  const auto label = rest_of_line(own, kLabelLine);
  if (!label) throw UserError("the constants kept with the run do not say what its label is");
  return labels_of(own, std::string(*label));
}

// FNV-1a over the bytes, then a multiply-xorshift: FNV's high bits, which the range reduction takes, mix
// slowly.
int32_t category_bucket(std::string_view value, int64_t buckets) {
  if (value.empty()) return 0;
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : value) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ (hash >> 32)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 32)) >> 32;
  return static_cast<int32_t>(1 + ((hash * static_cast<uint64_t>(buckets - 1)) >> 32));
}

namespace {

const BlockField* find_made(const std::vector<BlockField>& made, std::string_view name) {
  const auto found =
      std::find_if(made.begin(), made.end(), [&](const BlockField& field) { return field.name == name; });
  return found == made.end() ? nullptr : &*found;
}

// What columns that transforms made can be taken as.
void take_made(const EncodingOptions& options, const std::vector<BlockField>& made, TableEncoding& encoding) {
  for (NumericColumn& column : encoding.numeric)
    if (const BlockField* field = find_made(made, column.name)) column.as_is = field->scaled;
  for (const std::string& column : encoding.categorical) {
    const BlockField* field = find_made(made, column);
    if (field == nullptr || field->ids == 0) continue;
    if (field->ids > options.buckets)
      throw UserError(
          "column '{}' has up to {} categories, but the model's tables have {} rows; set "
          "model.rows to at least {}, or make fewer",
          column, field->ids, options.buckets, field->ids);
    encoding.ids.emplace(column, field->ids);
  }
}

void refuse_weight(const EncodingOptions& options, const std::string& column) {
  if (column == options.weight && !column.empty())
    throw UserError("column '{}' is data.weight; it cannot be a feature as well", column);
}

}  // namespace

TableEncoding resolve_roles(const EncodingOptions& options, std::string_view name,
                            const std::vector<std::string>& header, const std::vector<ColumnLook>& looks,
                            const std::vector<BlockField>& made) {
  if (options.buckets < 2 || options.buckets > std::numeric_limits<int32_t>::max())
    throw UserError("categorical columns have {} buckets; use at least 2 and below 2^31", options.buckets);
  std::vector<std::string> all = header;
  for (const BlockField& field : made)
    if (field.width == 1 && !contains(header, field.name)) all.push_back(field.name);
  require_column(name, all, options.label);
  if (!options.weight.empty()) require_column(name, all, options.weight);
  TableEncoding encoding{options.label, {}, {}, options.buckets};
  encoding.labels.column = options.label;
  encoding.weight = options.weight;
  for (const auto* names : {&options.numeric, &options.categorical, &options.ignore})
    for (const std::string& column : *names) require_column(name, all, column);
  for (const std::string& column : options.numeric) encoding.numeric.push_back({.name = column});
  encoding.categorical = options.categorical;
  if (!options.names_roles()) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] == options.label || all[i] == options.weight || contains(options.ignore, all[i])) continue;
      const BlockField* field = find_made(made, all[i]);
      const ColumnLook look = field == nullptr ? looks[i] : look_of(*field);
      if (look == ColumnLook::kNumeric) encoding.numeric.push_back({.name = all[i]});
      if (look == ColumnLook::kCategorical) encoding.categorical.push_back(all[i]);
    }
  }
  for (const NumericColumn& column : encoding.numeric)
    if (column.name == options.label || contains(encoding.categorical, column.name))
      throw UserError("column '{}' has two roles; name it once", column.name);
  if (contains(encoding.categorical, options.label))
    throw UserError("column '{}' is the label; it cannot be a feature as well", options.label);
  for (const NumericColumn& column : encoding.numeric) refuse_weight(options, column.name);
  for (const std::string& column : encoding.categorical) refuse_weight(options, column);
  if (options.weight == options.label && !options.label.empty())
    throw UserError("column '{}' is the label; it cannot be data.weight as well", options.label);
  if (encoding.numeric.empty() && encoding.categorical.empty())
    throw UserError("{}: no column holds anything to learn from beside the label; name some under columns",
                    name);
  take_made(options, made, encoding);
  for (const std::string& column : options.log1p.value_or(std::vector<std::string>{}))
    if (std::none_of(encoding.numeric.begin(), encoding.numeric.end(),
                     [&](const auto& c) { return c.name == column; }))
      throw UserError("log1p names '{}', which is not a numeric column", column);
  return encoding;
}

NumericSummary summarise(std::span<const double> values) {
  NumericSummary summary{static_cast<int64_t>(values.size()), moments_of(values), {}};
  if (!(summary.values.smallest >= 0)) return summary;
  std::vector<double> logs(values.begin(), values.end());
  for (double& x : logs)
    if (!std::isnan(x)) x = portable_log1p(x);
  summary.logs = moments_of(logs);
  return summary;
}

void NumericSummary::merge(const NumericSummary& next) {
  records += next.records;
  values.merge(next.values);
  logs.merge(next.logs);
}

void fit_numeric(const EncodingOptions& options, const NumericSummary& summary, NumericColumn& column) {
  const Moments& m = summary.values;
  const bool named = options.log1p && contains(*options.log1p, column.name);
  column.missing_flag = m.count < summary.records;
  if (column.as_is) {
    if (named)
      throw UserError("log1p names '{}', which a transform has scaled; use the transform log before that",
                      column.name);
    column.fill = options.fill.value_or(0.0);
    return;
  }
  if (m.count > 0 && m.smallest >= 0)
    column.log1p = options.log1p ? named : m.skewness() > kSkewed;
  else if (named)
    throw UserError("log1p names '{}', whose smallest value is {}; it needs values of at least 0",
                    column.name, m.smallest);
  const Moments& taken = column.log1p ? summary.logs : m;
  column.mean = taken.mean;
  column.deviation = taken.deviation() > 0 ? taken.deviation() : 1.0;
  column.fill = options.fill ? encode_number(column, *options.fill) : 0.0;
}

float encode_number(const NumericColumn& column, double value) {
  if (std::isnan(value)) return static_cast<float>(column.fill);
  if (column.as_is) return static_cast<float>(value);
  // Values below 0 can only appear outside the training shards.
  if (column.log1p) value = value < 0 ? -portable_log1p(-value) : portable_log1p(value);
  return static_cast<float>(
      std::clamp((value - column.mean) / column.deviation, -kNumericClip, kNumericClip));
}

namespace {

// The arithmetic of encode_number without branches, several at a time.
[[gnu::always_inline]] inline void encode_scaled(const NumericColumn& column, std::span<const double> values,
                                                 std::span<float> out) {
  const double mean = column.mean, deviation = column.deviation, fill = column.fill;
  for (size_t i = 0; i < values.size(); ++i) {
    double x = (values[i] - mean) / deviation;
    x = -kNumericClip > x ? -kNumericClip : x;
    x = kNumericClip < x ? kNumericClip : x;
    out[i] = static_cast<float>(std::isnan(values[i]) ? fill : x);
  }
}

[[gnu::target("avx2")]] void encode_scaled_wide(const NumericColumn& column, std::span<const double> values,
                                                std::span<float> out) {
  encode_scaled(column, values, out);
}

}  // namespace

void encode_numbers(const NumericColumn& column, std::span<const double> values, std::span<float> out) {
  static const bool wide = __builtin_cpu_supports("avx2") != 0;
  if (column.log1p || column.as_is)
    for (size_t i = 0; i < values.size(); ++i) out[i] = encode_number(column, values[i]);
  else if (wide)
    encode_scaled_wide(column, values, out);
  else
    encode_scaled(column, values, out);
}

}  // namespace lockstep

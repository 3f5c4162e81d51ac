#include "data/csv_encoding.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/portable_math.h"

namespace lockstep {
namespace {

constexpr double kSkewed = 2.0;
// Far beyond any measurement, and its cube summed over any table stays finite.
constexpr double kLargestNumber = 1e30;

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void require_column(std::string_view file, const std::vector<std::string>& header, const std::string& name) {
  if (contains(header, name)) return;
  const std::vector<std::string_view> known(header.begin(), header.end());
  throw UserError("{}:1: there is no column '{}'; {}", file, name, suggestion(name, known));
}

enum class Role { kNumeric, kCategorical, kIgnored };

Role infer_role(const std::vector<std::vector<std::string>>& sample, size_t column) {
  int64_t present = 0;
  bool numbers = true;
  std::set<std::string_view> distinct;
  for (const auto& record : sample) {
    const std::string_view field = record[column];
    if (is_missing(field)) continue;
    ++present;
    numbers = numbers && parse_number(field).has_value();
    distinct.insert(field);
  }
  if (present == 0) return Role::kIgnored;
  if (numbers) return Role::kNumeric;
  const bool identifier = present >= 100 && static_cast<int64_t>(distinct.size()) * 2 > present;
  return identifier ? Role::kIgnored : Role::kCategorical;
}

struct Moments {
  int64_t count = 0;
  double mean = 0;
  double deviation = 0;
  double skewness = 0;
  double smallest = 0;
};

Moments moments(std::span<const double> values) {
  Moments m;
  m.smallest = std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const double x : values) {
    if (std::isnan(x)) continue;
    ++m.count;
    sum += x;
    m.smallest = std::min(m.smallest, x);
  }
  if (m.count == 0) return m;
  const double n = static_cast<double>(m.count);
  m.mean = sum / n;
  double second = 0;
  double third = 0;
  for (const double x : values) {
    if (std::isnan(x)) continue;
    const double d = x - m.mean;
    second += d * d;
    third += d * d * d;
  }
  m.deviation = std::sqrt(second / n);
  if (m.deviation > 0) m.skewness = third / n / (m.deviation * m.deviation * m.deviation);
  return m;
}

}  // namespace

int64_t CsvEncoding::dense() const {
  int64_t count = static_cast<int64_t>(numeric.size());
  for (const CsvNumeric& column : numeric) count += column.missing_flag;
  return count;
}

std::string to_text(const CsvEncoding& encoding) {
  std::string text = fmt::format("label {}\n", encoding.label);
  for (const CsvNumeric& c : encoding.numeric)
    text += fmt::format("numeric {} log1p={} flag={} mean={} deviation={} fill={}\n", c.name, c.log1p,
                        c.missing_flag, c.mean, c.deviation, c.fill);
  for (const std::string& name : encoding.categorical)
    text += fmt::format("categorical {} buckets={}\n", name, encoding.buckets);
  return text;
}

bool is_missing(std::string_view field) {
  return field.empty() || field == "NA" || field == "NaN" || field == "nan" || field == "null" ||
         field == "NULL";
}

std::optional<double> parse_number(std::string_view field) {
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (failure != std::errc() || end != field.data() + field.size() || !(std::fabs(value) <= kLargestNumber))
    return {};
  return value;
}

std::optional<float> parse_label(std::string_view field) {
  if (field == "true" || field == "True" || field == "TRUE") return 1.0f;
  if (field == "false" || field == "False" || field == "FALSE") return 0.0f;
  const auto number = parse_number(field);
  if (!number || (*number != 0.0 && *number != 1.0)) return {};
  return static_cast<float>(*number);
}

// FNV-1a over the bytes, then a multiply-xorshift: FNV's high bits, which the range reduction takes, mix
// slowly.
int32_t category_bucket(std::string_view value, int64_t buckets) {
  if (is_missing(value)) return 0;
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : value) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ (hash >> 32)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 32)) >> 32;
  return static_cast<int32_t>(1 + ((hash * static_cast<uint64_t>(buckets - 1)) >> 32));
}

CsvEncoding resolve_roles(const CsvOptions& options, std::string_view name,
                          const std::vector<std::string>& header,
                          const std::vector<std::vector<std::string>>& sample) {
  if (options.buckets < 2 || options.buckets > std::numeric_limits<int32_t>::max())
    throw UserError("categorical columns have {} buckets; use at least 2 and below 2^31", options.buckets);
  require_column(name, header, options.label);
  CsvEncoding encoding{options.label, {}, {}, options.buckets};
  for (const auto* names : {&options.numeric, &options.categorical, &options.ignore})
    for (const std::string& column : *names) require_column(name, header, column);
  for (const std::string& column : options.numeric) encoding.numeric.push_back({.name = column});
  encoding.categorical = options.categorical;
  if (options.numeric.empty() && options.categorical.empty()) {
    for (size_t i = 0; i < header.size(); ++i) {
      if (header[i] == options.label || contains(options.ignore, header[i])) continue;
      const Role role = infer_role(sample, i);
      if (role == Role::kNumeric) encoding.numeric.push_back({.name = header[i]});
      if (role == Role::kCategorical) encoding.categorical.push_back(header[i]);
    }
  }
  for (const CsvNumeric& column : encoding.numeric)
    if (column.name == options.label || contains(encoding.categorical, column.name))
      throw UserError("column '{}' has two roles; name it once", column.name);
  if (contains(encoding.categorical, options.label))
    throw UserError("column '{}' is the label; it cannot be a feature as well", options.label);
  if (encoding.numeric.empty())
    throw UserError("{}: no column holds numbers beside the label; name at least one as numeric", name);
  for (const std::string& column : options.log1p.value_or(std::vector<std::string>{}))
    if (std::none_of(encoding.numeric.begin(), encoding.numeric.end(),
                     [&](const auto& c) { return c.name == column; }))
      throw UserError("log1p names '{}', which is not a numeric column", column);
  return encoding;
}

void fit_numeric(const CsvOptions& options, std::span<const double> values, CsvNumeric& column) {
  Moments m = moments(values);
  column.missing_flag = m.count < static_cast<int64_t>(values.size());
  if (m.count > 0 && m.smallest >= 0)
    column.log1p = options.log1p ? contains(*options.log1p, column.name) : m.skewness > kSkewed;
  else if (options.log1p && contains(*options.log1p, column.name))
    throw UserError("log1p names '{}', whose smallest value is {}; it needs values of at least 0",
                    column.name, m.smallest);
  if (column.log1p) {
    std::vector<double> logs(values.begin(), values.end());
    for (double& x : logs)
      if (!std::isnan(x)) x = portable_log1p(x);
    m = moments(logs);
  }
  column.mean = m.mean;
  column.deviation = m.deviation > 0 ? m.deviation : 1.0;
  column.fill = options.fill ? encode_number(column, *options.fill) : 0.0;
}

float encode_number(const CsvNumeric& column, double value) {
  if (std::isnan(value)) return static_cast<float>(column.fill);
  // Values below 0 can only appear outside the training shards.
  if (column.log1p) value = value < 0 ? -portable_log1p(-value) : portable_log1p(value);
  return static_cast<float>(
      std::clamp((value - column.mean) / column.deviation, -kNumericClip, kNumericClip));
}

}  // namespace lockstep

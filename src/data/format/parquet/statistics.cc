#include "data/format/parquet/statistics.h"

#include <cmath>
#include <cstring>

#include "data/format/parquet/metadata.h"

namespace lockstep::parquet {
namespace {

template <typename T>
std::optional<T> plain(const std::string& bytes) {
  if (bytes.size() != sizeof(T)) return {};
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <typename T>
std::optional<ScalarValue> whole(const std::string& bytes) {
  const auto value = plain<T>(bytes);
  if (!value) return {};
  return ExactNumber::of(static_cast<int64_t>(*value));
}

template <typename T>
std::optional<ScalarValue> floating(const std::string& bytes) {
  const auto value = plain<T>(bytes);
  if (!value || std::isnan(*value)) return {};
  return ExactNumber{static_cast<double>(*value), {}};
}

// Nothing for what cannot be used, or has the wrong size.
std::optional<ScalarValue> value_of(const Leaf& leaf, const std::string& bytes) {
  switch (leaf.physical) {
    case Physical::kBoolean: return whole<uint8_t>(bytes);
    case Physical::kInt32: return leaf.is_unsigned ? whole<uint32_t>(bytes) : whole<int32_t>(bytes);
    case Physical::kInt64: return leaf.is_unsigned ? std::nullopt : whole<int64_t>(bytes);
    case Physical::kFloat: return floating<float>(bytes);
    case Physical::kDouble: return floating<double>(bytes);
    case Physical::kByteArray: return bytes;
    default: return {};
  }
}

// Whether the deprecated bounds can be trusted: written by a signed comparison of numbers.
bool signed_number(const Leaf& leaf) {
  return leaf.physical != Physical::kByteArray && leaf.physical != Physical::kFixed && !leaf.is_unsigned;
}

}  // namespace

ColumnBounds bounds_of(const Leaf& leaf, const Statistics& statistics, bool ordered, int64_t rows) {
  ColumnBounds bounds;
  if (leaf.list() || leaf.scale >= 0 || !leaf.refusal.empty()) return bounds;
  const auto read = [&](const std::optional<std::string>& value, const std::optional<std::string>& old) {
    if (value && ordered) return value_of(leaf, *value);
    if (old && signed_number(leaf)) return value_of(leaf, *old);
    return std::optional<ScalarValue>();
  };
  bounds.least = read(statistics.min_value, statistics.min);
  bounds.most = read(statistics.max_value, statistics.max);
  // Bounds that contradict each other were written by a wrong order.
  const auto* least = bounds.least ? std::get_if<ExactNumber>(&*bounds.least) : nullptr;
  const auto* most = bounds.most ? std::get_if<ExactNumber>(&*bounds.most) : nullptr;
  const bool numbers_cross = least != nullptr && most != nullptr && least->value > most->value;
  const bool texts_cross = bounds.least && bounds.most && least == nullptr &&
                           std::get<std::string>(*bounds.most) < std::get<std::string>(*bounds.least);
  if (numbers_cross || texts_cross) return {};
  // A text may stand for a value that is missing, and a float may be NaN.
  const bool only_null_misses = leaf.physical != Physical::kByteArray && leaf.physical != Physical::kFixed &&
                                leaf.physical != Physical::kFloat && leaf.physical != Physical::kDouble;
  if (only_null_misses) bounds.may_miss = leaf.max_definition > 0 && statistics.nulls.value_or(1) != 0;
  if (statistics.nulls && *statistics.nulls == rows && leaf.max_definition > 0) bounds.may_hold = false;
  return bounds;
}

}  // namespace lockstep::parquet

#include "data/table/column_tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "data/format/value_text.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

// Of two hashes that stand for something else: no label, and several labels. Hashes of values avoid both.
constexpr uint64_t kNone = 0, kSeveral = 1;
// So many records must have another label than most, and a value must have so many records on average, before
// a column is said to decide the label.
constexpr int64_t kFewestOthers = 10, kFewestRepeats = 10;

uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()) | 2; }

uint64_t hash_of(double value) {
  uint64_t hash = std::bit_cast<uint64_t>(value + 0.0) + 0x9e3779b97f4a7c15;  // -0 is 0
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return (hash ^ (hash >> 31)) | 2;
}

uint64_t joined(uint64_t known, uint64_t label) {
  return known == kNone || known == label ? label : kSeveral;
}

}  // namespace

void BlockLabels::set(const BlockColumn* column, size_t records) {
  hashes.clear();
  numbers.clear();
  if (column == nullptr || column->width != 1) return;
  hashes.resize(records);
  numbers.resize(records);
  for_each_category(*column, records, [&](size_t r, std::string_view text) {
    hashes[r] = text.empty() ? kNone : hash_of(text);
    numbers[r] = parse_number(text).value_or(std::numeric_limits<double>::quiet_NaN());
  });
}

void LabelTally::add(const BlockLabels& labels) {
  records_ += static_cast<int64_t>(labels.hashes.size());
  if (many_) return;
  for (const uint64_t label : labels.hashes) ++counts_[label];
  many_ = counts_.size() > ColumnTally::kMostExact;
}

void LabelTally::merge(const LabelTally& other) {
  records_ += other.records_;
  many_ = many_ || other.many_;
  if (many_) return;
  for (const auto& [label, count] : other.counts_) counts_[label] += count;
  many_ = counts_.size() > ColumnTally::kMostExact;
}

bool LabelTally::varies() const {
  if (many_) return true;
  int64_t most = 0;
  for (const auto& [label, count] : counts_) most = std::max(most, count);
  return records_ - most >= kFewestOthers;
}

void ColumnTally::add(const BlockColumn& column, size_t records, const BlockLabels& labels, bool parses) {
  records_ += static_cast<int64_t>(records);
  labelled_ = labelled_ || !labels.hashes.empty();
  const auto label = [&](size_t r) { return labels.hashes.empty() ? kNone : labels.hashes[r]; };
  const auto missing = [&](size_t r) {
    ++missing_;
    missing_label_ = joined(missing_label_, label(r));
  };
  if (column.width != 1) {
    for (size_t r = 0; r < records; ++r)
      if (column.is_missing(r)) missing(r);
    return;
  }
  if (column.type() == ValueType::kBytes) {
    for_each_category(column, records, [&](size_t r, std::string_view text) {
      if (text.empty()) return missing(r);
      add_value(hash_of(text), label(r));
      same_as_label_ = same_as_label_ && label(r) == hash_of(text);
      if (!parses) return;
      if (const auto number = parse_number(text)) add_number(*number, label(r));
    });
    return;
  }
  std::vector<double> room;
  const std::span<const double> numbers = numbers_in(column, room);
  for (size_t r = 0; r < records; ++r) {
    if (std::isnan(numbers[r])) {
      missing(r);
      continue;
    }
    add_value(hash_of(numbers[r]), label(r));
    add_number(numbers[r], label(r));
    same_as_label_ = same_as_label_ && labelled_ && numbers[r] == labels.numbers[r];
  }
}

void ColumnTally::add_value(uint64_t hash, uint64_t label) {
  if (registers_) return sketch(hash);
  const auto [at, added] = labels_.try_emplace(hash, label);
  if (!added) {
    at->second = joined(at->second, label);
  } else if (labels_.size() > kMostExact) {
    estimate();
  }
}

void ColumnTally::add_number(double value, uint64_t label) {
  smallest_ = numbers_ == 0 ? value : std::min(smallest_, value);
  largest_ = numbers_ == 0 ? value : std::max(largest_, value);
  ++numbers_;
  if (!other_labels_) add_range({label, value, value, 1});
}

void ColumnTally::add_range(const LabelRange& range) {
  for (LabelRange& known : ranges_) {
    if (known.label != range.label) continue;
    known.smallest = std::min(known.smallest, range.smallest);
    known.largest = std::max(known.largest, range.largest);
    known.count += range.count;
    return;
  }
  other_labels_ = other_labels_ || ranges_.size() == 2;
  if (!other_labels_) ranges_.push_back(range);
}

void ColumnTally::estimate() {
  registers_ = std::make_unique<Registers>();
  for (const auto& [hash, label] : labels_) sketch(hash);
  labels_.clear();
}

void ColumnTally::sketch(uint64_t hash) {
  constexpr int kBits = 12;
  uint8_t& place = (*registers_)[hash >> (64 - kBits)];
  place = std::max(place, static_cast<uint8_t>(std::countl_zero(hash << kBits | 1) + 1));
}

void ColumnTally::merge(const ColumnTally& other) {
  records_ += other.records_;
  missing_ += other.missing_;
  missing_label_ =
      other.missing_label_ == kNone ? missing_label_ : joined(missing_label_, other.missing_label_);
  labelled_ = labelled_ || other.labelled_;
  same_as_label_ = same_as_label_ && other.same_as_label_;
  if (other.numbers_ > 0) {
    smallest_ = numbers_ == 0 ? other.smallest_ : std::min(smallest_, other.smallest_);
    largest_ = numbers_ == 0 ? other.largest_ : std::max(largest_, other.largest_);
    numbers_ += other.numbers_;
  }
  other_labels_ = other_labels_ || other.other_labels_;
  if (!other_labels_)
    for (const LabelRange& range : other.ranges_) add_range(range);
  if (other.registers_) {
    if (!registers_) estimate();
    for (size_t i = 0; i < registers_->size(); ++i)
      (*registers_)[i] = std::max((*registers_)[i], (*other.registers_)[i]);
    return;
  }
  for (const auto& [hash, label] : other.labels_) add_value(hash, label);
}

// Flajolet, Fusy, Gandouet and Meunier 2007, with linear counting where registers are left over.
int64_t ColumnTally::estimated() const {
  double sum = 0;
  int64_t zeros = 0;
  for (const uint8_t place : *registers_) {
    sum += std::ldexp(1.0, -place);
    zeros += place == 0 ? 1 : 0;
  }
  const auto m = static_cast<double>(registers_->size());
  const double raw = 0.7213 / (1 + 1.079 / m) * m * m / sum;
  return std::llround(raw <= 2.5 * m && zeros > 0 ? m * std::log(m / static_cast<double>(zeros)) : raw);
}

bool ColumnTally::decides(const LabelTally& labels) const {
  if (!labelled_ || !labels.varies() || missing_ == records_) return false;
  if (same_as_label_ && missing_ == 0) return true;
  const auto one_label = [](uint64_t label) { return label != kSeveral; };
  if (!registers_) {
    const int64_t values = static_cast<int64_t>(labels_.size()) + (missing_ > 0 ? 1 : 0);
    return values * kFewestRepeats <= records_ && one_label(missing_label_) &&
           std::all_of(labels_.begin(), labels_.end(),
                       [&](const auto& value) { return one_label(value.second); });
  }
  if (missing_ > 0 || other_labels_ || ranges_.size() != 2) return false;
  const LabelRange &a = ranges_[0], &b = ranges_[1];
  return std::min(a.count, b.count) >= kFewestOthers && (a.largest < b.smallest || b.largest < a.smallest);
}

ColumnFacts ColumnTally::facts(const LabelTally& labels) const {
  ColumnFacts facts{.records = records_,
                    .missing = missing_,
                    .distinct = registers_ ? std::min(estimated(), records_ - missing_)
                                           : static_cast<int64_t>(labels_.size()),
                    .exact = !registers_,
                    .decides_label = decides(labels)};
  if (numbers_ > 0 && numbers_ == records_ - missing_) {
    facts.smallest = smallest_;
    facts.largest = largest_;
  }
  return facts;
}

std::string to_text(const std::vector<ColumnFacts>& facts) {
  std::string text;
  for (const ColumnFacts& f : facts) {
    text += fmt::format("{} {} {} {} {}", f.records, f.missing, f.distinct, f.exact ? 1 : 0,
                        f.decides_label ? 1 : 0);
    if (f.smallest) text += fmt::format(" {} {}", *f.smallest, *f.largest);
    text += "\n";
  }
  return text;
}

std::optional<std::vector<ColumnFacts>> parse_facts(std::string_view text, size_t columns) {
  std::vector<ColumnFacts> facts(columns);
  std::string_view rest = text;
  for (ColumnFacts& f : facts) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const auto next = [&](auto& number) {
      const auto [at, failure] = std::from_chars(line.data(), line.data() + line.size(), number);
      if (failure != std::errc()) return false;
      line.remove_prefix(std::min(static_cast<size_t>(at - line.data()) + 1, line.size()));
      return true;
    };
    int exact = 0, decides = 0;
    if (!next(f.records) || !next(f.missing) || !next(f.distinct) || !next(exact) || !next(decides))
      return {};
    f.exact = exact == 1;
    f.decides_label = decides == 1;
    double smallest = 0, largest = 0;
    if (!next(smallest) || !next(largest)) continue;
    f.smallest = smallest;
    f.largest = largest;
  }
  // Printed again it must be the same: then nothing was passed over.
  if (to_text(facts) != text) return {};
  return facts;
}

}  // namespace lockstep

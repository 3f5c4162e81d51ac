#include <algorithm>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/sha256.h"
#include "data/order/draws.h"
#include "data/order/order.h"
#include "data/synthetic/patterns.h"

namespace lockstep {
namespace {

constexpr uint32_t kRecordStream = 11;
// How many tokens come from the favoured set beyond its fair share: the label shows in the whole, not in
// single tokens.
constexpr double kFavoured = 0.4;

}  // namespace

PatternText::PatternText(const PatternTextOptions& options) : options_(options) {
  if (options.classes < 2 || options.vocab < options.classes + 1 || options.seq < 2 || options.records < 1)
    throw UserError(
        "pattern_text: {} records of {} tokens from {} in {} classes; use at least 1, 2, classes + 1 and 2",
        options.records, options.seq, options.vocab, options.classes);
  sets_.resize(static_cast<size_t>(options.classes));
  const Permutation shuffled(options.seed, 0, options.vocab - 1);
  for (int64_t i = 0; i < options.vocab - 1; ++i)
    sets_[static_cast<size_t>(i % options.classes)].push_back(static_cast<int32_t>(1 + shuffled(i)));
}

std::vector<Column> PatternText::columns() const {
  const Shape positions{options_.seq};
  std::vector<Column> columns{
      {"tokens", DType::kI32, positions}, {"segments", DType::kI32, positions}, {"labels", DType::kI32, {}}};
  if (options_.padded) columns.push_back({"keys_visible", DType::kU8, positions});
  return columns;
}

int64_t PatternText::make(int64_t record, std::span<int32_t> tokens, int32_t& label) const {
  Draws draws(options_.seed, kRecordStream, static_cast<uint64_t>(options_.first + record));
  const size_t favoured = draws.below(sets_.size());
  const int64_t half = options_.seq / 2;
  const int64_t length =
      options_.padded ? options_.seq - draws.below(static_cast<uint64_t>(half)) : options_.seq;
  std::vector<int64_t> counts(sets_.size());
  std::fill(tokens.begin(), tokens.end(), 0);
  for (int64_t t = 1; t < length; ++t) {
    const size_t set = draws.chance(kFavoured) ? favoured : draws.below(sets_.size());
    // Zipf's law: frequent tokens are learnt in a few steps, rare ones later.
    const double rank =
        portable_exp(draws.uniform() * portable_log(static_cast<double>(sets_[set].size()) + 1.0));
    tokens[static_cast<size_t>(t)] = sets_[set][std::min(static_cast<size_t>(rank), sets_[set].size()) - 1];
    ++counts[set];
  }
  label = static_cast<int32_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  return length;
}

void PatternText::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  for (size_t r = 0; r < records.size(); ++r) {
    const int64_t row = static_cast<int64_t>(r);
    const auto tokens = batch.record<int32_t>(0, row);
    const auto segments = batch.record<int32_t>(1, row);
    int32_t label = kIgnoredLabel;
    int64_t length = 1;
    if (records[r] == kNoRecord)
      std::fill(tokens.begin(), tokens.end(), 0);
    else
      length = make(records[r], tokens, label);
    std::fill(segments.begin(), segments.end(), 0);
    batch.record<int32_t>(2, row)[0] = label;
    if (!options_.padded) continue;
    const auto visible = batch.record<uint8_t>(3, row);
    for (size_t t = 0; t < visible.size(); ++t) visible[t] = static_cast<int64_t>(t) < length;
  }
}

std::string PatternText::fingerprint() const {
  return sha256(fmt::format("pattern_text 1\n{} {} {} {} {} {} {}\n", options_.records, options_.first,
                            options_.seq, options_.vocab, options_.classes, options_.padded, options_.seed));
}

std::string PatternText::describe(int64_t record) const {
  return fmt::format("pattern_text record {}", options_.first + record);
}

}  // namespace lockstep

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/sha256.h"
#include "data/order/draws.h"
#include "data/synthetic/patterns.h"

namespace lockstep {
namespace {

constexpr uint32_t kRecordStream = 14;
constexpr uint64_t kSuccessorStream = 0x7375636300;  // "succ"
// Of the three successors, each including those before it; the rest is any token.
constexpr std::array<double, 3> kUpTo{0.65, 0.85, 0.95};

}  // namespace

PatternTokens::PatternTokens(const PatternTokensOptions& options) : options_(options) {
  if (options.records < 1 || options.seq < 1 || options.vocab < 2)
    throw UserError("pattern_tokens: {} records of {} tokens from {}; use at least 1, 1 and 2",
                    options.records, options.seq, options.vocab);
  for (uint64_t i = 0; i < kUpTo.size(); ++i)
    successors_.emplace_back(options.seed, kSuccessorStream + i, options.vocab);
}

std::vector<Column> PatternTokens::columns() const {
  return {{"tokens", DType::kI32, {options_.seq}}, {"targets", DType::kI32, {options_.seq}}};
}

void PatternTokens::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  const uint64_t vocab = static_cast<uint64_t>(options_.vocab);
  for (size_t r = 0; r < records.size(); ++r) {
    const auto tokens = batch.record<int32_t>(0, static_cast<int64_t>(r));
    const auto targets = batch.record<int32_t>(1, static_cast<int64_t>(r));
    if (records[r] == kNoRecord) {
      std::fill(tokens.begin(), tokens.end(), 0);
      std::fill(targets.begin(), targets.end(), kIgnoredLabel);
      continue;
    }
    Draws draws(options_.seed, kRecordStream, static_cast<uint64_t>(options_.first + records[r]));
    int64_t token = draws.below(vocab);
    for (size_t t = 0; t < tokens.size(); ++t) {
      tokens[t] = static_cast<int32_t>(token);
      const double u = draws.uniform();
      const size_t choice =
          static_cast<size_t>(std::upper_bound(kUpTo.begin(), kUpTo.end(), u) - kUpTo.begin());
      token = choice < successors_.size() ? successors_[choice](token) : draws.below(vocab);
      targets[t] = static_cast<int32_t>(token);
    }
  }
}

std::string PatternTokens::fingerprint() const {
  return sha256(fmt::format("pattern_tokens 1\n{} {} {} {} {}\n", options_.records, options_.first,
                            options_.seq, options_.vocab, options_.seed));
}

std::string PatternTokens::describe(int64_t record) const {
  return fmt::format("pattern_tokens record {}", options_.first + record);
}

}  // namespace lockstep

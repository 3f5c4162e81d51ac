#include "use/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/philox.h"
#include "base/portable_math.h"

namespace lockstep {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
// What the draws are for.
constexpr uint64_t kStream = 0x67656e6572617465;  // "generate"

// Every token once, however often it was seen.
void penalise(std::span<float> logits, double penalty, std::span<const int32_t> seen) {
  const auto factor = static_cast<float>(penalty);
  std::vector<bool> done(logits.size(), false);
  for (const int32_t token : seen) {
    const auto i = static_cast<size_t>(token);
    if (i >= logits.size() || done[i]) continue;
    done[i] = true;
    logits[i] = logits[i] < 0 ? logits[i] * factor : logits[i] / factor;
  }
}

// The first of the largest; NaN never is.
size_t likeliest(std::span<const float> logits) {
  size_t best = logits.size();
  for (size_t i = 0; i < logits.size(); ++i)
    if (!std::isnan(logits[i]) && (best == logits.size() || logits[i] > logits[best])) best = i;
  if (best == logits.size())
    throw UserError("the model gives no number for any token (its logits are NaN); check its weights");
  return best;
}

void keep_top_k(std::span<float> logits, int64_t k) {
  if (k <= 0 || k >= static_cast<int64_t>(logits.size())) return;
  std::vector<float> sorted(logits.begin(), logits.end());
  std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<>());
  const float least = sorted[static_cast<size_t>(k - 1)];
  for (float& logit : logits)
    if (logit < least) logit = kNever;
}

// Powers of all tokens that are left, times a common factor; 0 for the others.
std::vector<double> powers_of(std::span<const float> logits) {
  const float largest = logits[likeliest(logits)];
  std::vector<double> powers(logits.size(), 0);
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > kNever)  // false for NaN
      powers[i] = portable_exp(static_cast<double>(logits[i]) - static_cast<double>(largest));
  return powers;
}

// From the least likely on, tokens go as long as what has gone stays within 1 - p.
void keep_top_p(std::vector<double>& powers, double p) {
  if (p >= 1) return;
  std::vector<size_t> order;
  double total = 0;
  for (size_t i = 0; i < powers.size(); ++i)
    if (powers[i] > 0) {
      order.push_back(i);
      total += powers[i];
    }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return powers[a] < powers[b]; });
  double gone = 0;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    gone += powers[order[i]];
    if (gone > (1 - p) * total) break;
    powers[order[i]] = 0;
  }
}

// In [0, 1), a multiple of 2^-53.
double uniform(uint64_t seed, int64_t draw) {
  const Philox random(seed, kStream);
  const auto index = 2 * static_cast<uint64_t>(draw);
  const uint64_t bits = uint64_t{random.bits(index)} << 32 | random.bits(index + 1);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

int32_t next_token(std::span<float> logits, const Sampling& sampling, std::span<const int32_t> seen,
                   int64_t draw) {
  if (sampling.repetition_penalty != 1) penalise(logits, sampling.repetition_penalty, seen);
  if (sampling.greedy) return static_cast<int32_t>(likeliest(logits));
  if (sampling.temperature != 1)
    for (float& logit : logits) logit /= static_cast<float>(sampling.temperature);
  keep_top_k(logits, sampling.top_k);
  std::vector<double> powers = powers_of(logits);
  keep_top_p(powers, sampling.top_p);
  double total = 0;
  for (const double power : powers) total += power;
  const double point = uniform(sampling.seed, draw) * total;
  double sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < powers.size(); ++i) {
    if (powers[i] == 0) continue;
    last = i;
    sum += powers[i];
    if (point < sum) break;
  }
  return static_cast<int32_t>(last);
}

}  // namespace lockstep

#include "data/order/selection.h"

#include <cmath>

#include "base/error.h"
#include "data/order/permutation.h"

namespace lockstep {
namespace {

constexpr double kTwo64 = 18446744073709551616.0;

uint64_t threshold_of(double share) {
  const double scaled = share * kTwo64;
  return scaled >= kTwo64 ? UINT64_MAX : static_cast<uint64_t>(scaled);
}

void require_share(double share) {
  if (!(share > 0 && share <= 1)) throw UserError("a share of {}; use more than 0 and at most 1", share);
}

}  // namespace

// FNV-1a over the bytes, then two mixes: the seed must move every bit.
uint64_t entity_hash(uint64_t seed, std::string_view key) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return mix64(mix64(hash ^ key.size()) + mix64(seed ^ 0x656e746974790000));
}

uint64_t entity_hash(uint64_t seed, int64_t key) {
  return mix64(mix64(static_cast<uint64_t>(key)) + mix64(seed ^ 0x656e746974790001));
}

EntitySplit::EntitySplit(uint64_t seed, const std::vector<double>& shares) : seed_(seed) {
  double sum = 0;
  for (const double share : shares) {
    require_share(share);
    sum += share;
    ends_.push_back(threshold_of(sum));
  }
  if (!(std::fabs(sum - 1) < 1e-9)) throw UserError("the shares of the parts sum to {}; make it 1", sum);
  ends_.pop_back();
}

int64_t EntitySplit::part_of_hash(uint64_t hash) const {
  int64_t part = 0;
  for (const uint64_t end : ends_) part += hash >= end ? 1 : 0;
  return part;
}

DownSample::DownSample(uint64_t seed, double keep) : seed_(seed) {
  require_share(keep);
  threshold_ = threshold_of(keep);
  weight_ = static_cast<float>(1 / keep);
}

bool DownSample::keeps(int64_t record) const {
  return keeps_hash(mix64(mix64(static_cast<uint64_t>(record)) + mix64(seed_ ^ 0x646f776e00000000)));
}

}  // namespace lockstep

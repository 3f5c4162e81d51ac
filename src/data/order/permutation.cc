#include "data/order/permutation.h"

#include "base/philox.h"

namespace lockstep {
namespace {

// Sets these draws apart from every other use of the seed.
constexpr uint64_t kOrderStream = 0x6f72646572000000;  // "order"

}  // namespace

bool has_eight() {
  static const bool has = __builtin_cpu_supports("avx512dq") != 0;
  return has;
}

// Two keys of every Philox block: what asking for a single position costs is mostly this.
Feistel::Feistel(uint64_t seed, uint64_t stream) {
  static_assert(kRounds % 2 == 0);
  const uint64_t use = kOrderStream ^ stream;
  const PhiloxKey key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (uint32_t pair = 0; pair < kRounds / 2; ++pair) {
    const auto words =
        philox4x32({pair, 0, static_cast<uint32_t>(use), static_cast<uint32_t>(use >> 32)}, key);
    keys_[2 * pair] = uint64_t{words[1]} << 32 | words[0];
    keys_[2 * pair + 1] = uint64_t{words[3]} << 32 | words[2];
  }
}

[[gnu::target("avx512f,avx512dq,lzcnt")]] void Feistel::replace_by_eight(Numbers& indices, size_t count,
                                                                         const Numbers& sizes,
                                                                         const Numbers& tweaks) const {
  replace_by<Eight>(indices, count, sizes, tweaks);
}

void Feistel::replace(Numbers& indices, size_t count, const Numbers& sizes, const Numbers& tweaks) const {
  if (has_eight())
    replace_by_eight(indices, count, sizes, tweaks);
  else
    replace_by<uint64_t>(indices, count, sizes, tweaks);
}

}  // namespace lockstep

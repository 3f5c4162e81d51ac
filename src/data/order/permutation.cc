#include "data/order/permutation.h"

#include <algorithm>
#include <cstring>

#include "base/philox.h"

namespace lockstep {
namespace {

// Sets these draws apart from every other use of the seed.
constexpr uint64_t kOrderStream = 0x6f72646572000000;  // "order"

}  // namespace

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

[[gnu::target("avx512f,avx512dq")]] void Feistel::encrypt_wide(std::span<uint64_t> indices,
                                                               const uint64_t* bits,
                                                               const uint64_t* tweaks) const {
  using Eight = uint64_t __attribute__((vector_size(64)));
  for (size_t at = 0; at < indices.size(); at += 8) {
    const size_t bytes = std::min<size_t>(8, indices.size() - at) * sizeof(uint64_t);
    Eight value{}, width{}, tweak{};
    std::memcpy(&value, indices.data() + at, bytes);
    std::memcpy(&width, bits + at, bytes);
    std::memcpy(&tweak, tweaks + at, bytes);
    encrypt(value, width, tweak);
    std::memcpy(indices.data() + at, &value, bytes);
  }
}

void Feistel::replace(std::span<uint64_t> indices, const uint64_t* sizes, const uint64_t* tweaks) const {
  static const bool wide = __builtin_cpu_supports("avx512dq") != 0;
  std::array<uint64_t, kMost> bits;
  for (size_t i = 0; i < indices.size(); ++i)
    bits[i] = i > 0 && sizes[i] == sizes[i - 1] ? bits[i - 1] : bits_of(sizes[i]);
  const Feistel keys = *this;  // which no store to the indices can change
  if (wide)
    keys.encrypt_wide(indices, bits.data(), tweaks);
  else
    for (size_t i = 0; i < indices.size(); ++i) keys.encrypt(indices[i], bits[i], tweaks[i]);
  for (size_t i = 0; i < indices.size(); ++i)
    while (indices[i] >= sizes[i]) keys.encrypt(indices[i], bits[i], tweaks[i]);
}

}  // namespace lockstep

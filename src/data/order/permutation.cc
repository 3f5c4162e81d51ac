#include "data/order/permutation.h"

#include "base/philox.h"

namespace lockstep {
namespace {

// Sets these draws apart from every other use of the seed.
constexpr uint64_t kOrderStream = 0x6f72646572000000;  // "order"

}  // namespace

Feistel::Feistel(uint64_t seed, uint64_t stream) {
  const Philox random(seed, kOrderStream ^ stream);
  for (uint64_t i = 0; i < kRounds; ++i)
    keys_[i] = uint64_t{random.bits(2 * i + 1)} << 32 | random.bits(2 * i);
}

}  // namespace lockstep

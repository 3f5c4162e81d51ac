#include "data/transform/category_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep {

int32_t hashed_id(std::string_view bytes, uint64_t seed, int64_t buckets) {
  const uint64_t hash = XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
  return static_cast<int32_t>(1 + (((hash >> 32) * static_cast<uint64_t>(buckets - 1)) >> 32));
}

}  // namespace lockstep

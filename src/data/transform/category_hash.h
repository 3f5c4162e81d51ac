// The hash of categories that `hash` and `cross` share: XXH3 with a seed, taken to [1, buckets); 0 is for
// what is missing. Frozen by golden values in a test: another one would be another version of both.
#pragma once
#include <cstdint>
#include <string_view>

namespace lockstep {

int32_t hashed_id(std::string_view bytes, uint64_t seed, int64_t buckets);

}  // namespace lockstep

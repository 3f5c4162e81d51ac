#include "data/index/content_hash.h"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace lockstep {

struct ContentHash::State {
  XXH3_state_t hash;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->hash); }

ContentHash::~ContentHash() = default;

void ContentHash::update(std::string_view bytes) {
  XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
}

std::string ContentHash::finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->hash);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace lockstep

// A 64-bit checksum at memory speed that says which tensor of a damaged file is the damaged one. The files
// themselves are guarded by SHA-256; this is no substitute for it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace lockstep {

// Each step is a bijection of the state for a given word and of the word for a given state, so that a change
// within one word can never go unnoticed. Independent of how the bytes are cut into pieces.
class Fold {
 public:
  void update(std::span<const std::byte> bytes) {
    while (filled_ != 0 && !bytes.empty()) {
      push(bytes.front());
      bytes = bytes.subspan(1);
    }
    for (; bytes.size() >= sizeof(uint64_t); bytes = bytes.subspan(sizeof(uint64_t))) {
      uint64_t word;
      std::memcpy(&word, bytes.data(), sizeof(word));
      mix(word);
    }
    for (const std::byte byte : bytes) push(byte);
  }

  // The bytes so far, and how many they were.
  uint64_t value() const {
    Fold last = *this;
    last.mix(last.pending_);
    last.mix(length_ * sizeof(uint64_t) + static_cast<uint64_t>(filled_));
    return last.state_;
  }

 private:
  void push(std::byte byte) {
    pending_ |= static_cast<uint64_t>(byte) << (8 * filled_);
    if (++filled_ < 8) return;
    const uint64_t word = pending_;
    pending_ = 0;
    filled_ = 0;
    mix(word);
  }
  void mix(uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15U;
    state_ ^= state_ >> 32;
    ++length_;
  }

  uint64_t state_ = 0x6a09e667f3bcc908U;
  uint64_t length_ = 0;
  uint64_t pending_ = 0;
  int filled_ = 0;
};

}  // namespace lockstep

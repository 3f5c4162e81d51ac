// Keys of short byte strings, and maps from strings and pairs to ids: what a tokenizer looks up for every
// word.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::tok {

inline uint64_t load8(const char* p) {
  uint64_t v = 0;
  std::memcpy(&v, p, 8);
  return v;
}

inline uint64_t load4(const char* p) {
  uint32_t v = 0;
  std::memcpy(&v, p, 4);
  return v;
}

inline uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// All bytes of a word of at most 24, without reading past it: with the length, equal keys are equal words.
struct WordKey {
  uint64_t a = 0, b = 0, c = 0;

  static constexpr size_t kLongest = 24;

  explicit WordKey(std::string_view word) {
    const char* p = word.data();
    const size_t n = word.size();
    if (n >= 8) {
      a = load8(p);
      c = load8(p + n - 8);
      if (n > 16) b = load8(p + 8);
    } else if (n >= 4) {
      a = load4(p) << 32 | load4(p + n - 4);
    } else if (n > 0) {
      const auto byte = [p](size_t i) { return uint64_t{static_cast<unsigned char>(p[i])}; };
      a = byte(0) << 16 | byte(n / 2) << 8 | byte(n - 1);
    }
  }

  uint64_t hash(size_t size) const {
    return mix(a ^ 0x9E3779B97F4A7C15u, b ^ 0xD6E8FEB86659FD93u) ^
           mix(c ^ 0xA0761D6478BD642Fu, size * 0xE7037ED1A0B428DBu + 0x8EBC6AF09C88C6E3u);
  }
};

uint64_t hash_bytes(std::string_view bytes);

// String to id. The strings are kept here.
class StringIds {
 public:
  static constexpr uint32_t kNone = ~0u;

  void reserve(size_t strings, size_t bytes);
  // A string that is there already gets the new id.
  void set(std::string_view text, uint32_t id);
  uint32_t find(std::string_view text) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t hash;
    uint32_t begin, bytes, id;
  };
  size_t slot_of(std::string_view text, uint64_t hash) const;
  void grow();

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // index of the entry + 1, 0 for none
};

// A pair of symbols to what they merge into, and when.
class PairMerges {
 public:
  struct Merge {
    uint32_t rank = kNone, symbol = kNone;
  };
  static constexpr uint32_t kNone = ~0u;

  void reserve(size_t pairs);
  // A pair that is there already gets the new merge.
  void set(uint32_t left, uint32_t right, Merge merge);
  // Rank in the upper half, symbol in the lower; all ones where the pair does not merge.
  uint64_t find(uint32_t left, uint32_t right) const {
    const uint64_t key = uint64_t{left} << 32 | right;
    for (size_t i = slot_of(key);; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.key == key) return slot.merge;
      if (slot.merge == ~uint64_t{0}) return ~uint64_t{0};
    }
  }

 private:
  struct Slot {
    uint64_t key = 0, merge = ~uint64_t{0};
  };
  size_t slot_of(uint64_t key) const {
    return (key * 0x9E3779B97F4A7C15u ^ key >> 29) * 0xD6E8FEB86659FD93u >> shift_;
  }

  size_t count_ = 0, mask_ = 1;
  int shift_ = 63;
  std::vector<Slot> slots_ = std::vector<Slot>(2);
};

}  // namespace lockstep::tok

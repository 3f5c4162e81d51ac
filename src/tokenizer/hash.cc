#include "tokenizer/hash.h"

#include <bit>

#include "base/error.h"

namespace lockstep::tok {

uint64_t hash_bytes(std::string_view bytes) {
  if (bytes.size() <= WordKey::kLongest) return WordKey(bytes).hash(bytes.size());
  uint64_t hash = bytes.size();
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8)
    hash = mix(hash ^ load8(bytes.data() + i), 0x9E3779B97F4A7C15u);
  return mix(hash ^ load8(bytes.data() + bytes.size() - 8), 0xD6E8FEB86659FD93u);
}

void StringIds::reserve(size_t strings, size_t bytes) {
  entries_.reserve(strings);
  bytes_.reserve(bytes);
  const size_t slots = std::bit_ceil(strings * 2 + 2);
  if (slots > slots_.size()) {
    slots_.assign(slots, 0);
    grow();
  }
}

size_t StringIds::slot_of(std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    if (slots_[i] == 0) return i;
    const Entry& entry = entries_[slots_[i] - 1];
    if (entry.hash == hash && std::string_view(bytes_).substr(entry.begin, entry.bytes) == text) return i;
  }
}

// Puts all entries into slots_, which are empty.
void StringIds::grow() {
  for (size_t e = 0; e < entries_.size(); ++e) {
    size_t i = entries_[e].hash & (slots_.size() - 1);
    while (slots_[i]) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = static_cast<uint32_t>(e + 1);
  }
}

void StringIds::set(std::string_view text, uint32_t id) {
  if ((entries_.size() + 1) * 2 > slots_.size()) {
    slots_.assign(std::bit_ceil((entries_.size() + 1) * 4), 0);
    grow();
  }
  const uint64_t hash = hash_bytes(text);
  const size_t slot = slot_of(text, hash);
  if (slots_[slot]) {
    entries_[slots_[slot] - 1].id = id;
    return;
  }
  LOCKSTEP_CHECK(bytes_.size() + text.size() < UINT32_MAX, "{} bytes of strings", bytes_.size());
  entries_.push_back({hash, static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(text.size()), id});
  bytes_.append(text);
  slots_[slot] = static_cast<uint32_t>(entries_.size());
}

uint32_t StringIds::find(std::string_view text) const {
  if (entries_.empty()) return kNone;
  const size_t slot = slot_of(text, hash_bytes(text));
  return slots_[slot] ? entries_[slots_[slot] - 1].id : kNone;
}

void PairMerges::reserve(size_t pairs) {
  const size_t size = std::bit_ceil(pairs * 2 + 2);
  if (size <= slots_.size()) return;
  std::vector<Slot> old(size);
  old.swap(slots_);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
  for (const Slot& slot : old) {
    if (slot.merge == ~uint64_t{0}) continue;
    size_t i = slot_of(slot.key);
    while (slots_[i].merge != ~uint64_t{0}) i = (i + 1) & mask_;
    slots_[i] = slot;
  }
}

void PairMerges::set(uint32_t left, uint32_t right, Merge merge) {
  reserve(count_ + 1);
  const uint64_t key = uint64_t{left} << 32 | right;
  size_t i = slot_of(key);
  while (slots_[i].merge != ~uint64_t{0} && slots_[i].key != key) i = (i + 1) & mask_;
  if (slots_[i].merge == ~uint64_t{0}) ++count_;
  slots_[i] = {key, uint64_t{merge.rank} << 32 | merge.symbol};
}

}  // namespace lockstep::tok

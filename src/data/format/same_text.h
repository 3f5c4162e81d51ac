// Whether two short texts are equal, without a call: for names that are compared for every value of a record.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lockstep {

inline bool same_text(const char* a, const char* b, size_t size) {
  const auto differ = [&]<typename Word>(size_t at, Word word) {
    Word other = 0;
    std::memcpy(&word, a + at, sizeof word);
    std::memcpy(&other, b + at, sizeof other);
    return word != other;
  };
  if (size >= sizeof(uint64_t)) {
    const size_t last = size - sizeof(uint64_t);
    for (size_t at = 0; at < last; at += sizeof(uint64_t))
      if (differ(at, uint64_t{})) return false;
    return !differ(last, uint64_t{});
  }
  if (size >= sizeof(uint32_t)) return !differ(0, uint32_t{}) && !differ(size - sizeof(uint32_t), uint32_t{});
  for (size_t at = 0; at < size; ++at)
    if (a[at] != b[at]) return false;
  return true;
}

inline bool same_text(std::string_view a, std::string_view b) {
  return a.size() == b.size() && same_text(a.data(), b.data(), a.size());
}

}  // namespace lockstep

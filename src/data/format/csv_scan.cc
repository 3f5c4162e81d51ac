#include "data/format/csv_scan.h"

#include <emmintrin.h>

#include <bit>
#include <cstring>

namespace lockstep {
namespace {

struct Chunk {
  __m128i part[4];

  explicit Chunk(const char* at) {
    for (int i = 0; i < 4; ++i) part[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + i);
  }
  uint64_t equal(char c) const {
    const __m128i wanted = _mm_set1_epi8(c);
    return gather([&](__m128i bytes) { return _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted)); });
  }
  uint64_t high() const {
    return gather([](__m128i bytes) { return _mm_movemask_epi8(bytes); });
  }

 private:
  template <typename Mask>
  uint64_t gather(const Mask& mask) const {
    uint64_t all = 0;
    for (int i = 0; i < 4; ++i)
      all |= static_cast<uint64_t>(static_cast<uint32_t>(mask(part[i]))) << (16 * i);
    return all;
  }
};

// Bit i is the parity of bits 0 to i.
uint64_t prefix_parity(uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

}  // namespace

void scan_csv(std::string_view text, char separator, bool last, CsvScan& scan) {
  // Every byte may end a field; what is not used is never touched.
  if (scan.ends.size() < text.size() + 1) scan.ends.resize(text.size() + 1);
  scan.lines.clear();
  uint32_t* const first = scan.ends.data();
  uint32_t* out = first;
  uint64_t inside = 0;  // all ones where the chunk begins in quotes
  uint64_t any_quote = 0, any_high = 0;
  for (size_t at = 0; at < text.size(); at += 64) {
    const Chunk chunk(text.data() + at);
    const uint64_t valid = text.size() - at >= 64 ? ~uint64_t{0} : (uint64_t{1} << (text.size() - at)) - 1;
    const uint64_t quotes = chunk.equal('"') & valid;
    uint64_t newlines = chunk.equal('\n') & valid;
    uint64_t ends = (chunk.equal(separator) & valid) | newlines;
    any_high |= chunk.high() & valid;
    if ((quotes | inside) != 0) {
      any_quote |= quotes;
      const uint64_t quoted = prefix_parity(quotes) ^ inside;
      inside = static_cast<uint64_t>(static_cast<int64_t>(quoted) >> 63);
      newlines &= ~quoted;
      ends &= ~quoted;
    }
    while (newlines != 0) {
      const uint64_t lower = newlines ^ (newlines - 1);  // up to and including the first line end
      const auto before = static_cast<uint32_t>(std::popcount(ends & lower));
      scan.lines.push_back(static_cast<uint32_t>(out - first) + before);
      newlines &= newlines - 1;
    }
    while (ends != 0) {
      *out++ = static_cast<uint32_t>(at) + static_cast<uint32_t>(std::countr_zero(ends));
      ends &= ends - 1;
    }
  }
  scan.quotes = any_quote != 0;
  scan.non_ascii = any_high != 0;
  scan.open_quote = inside != 0;
  const size_t closed = scan.lines.empty() ? 0 : first[scan.lines.back() - 1] + size_t{1};
  if (last && closed < text.size() && !scan.open_quote) {
    *out++ = static_cast<uint32_t>(text.size());
    scan.lines.push_back(static_cast<uint32_t>(out - first));
  }
}

}  // namespace lockstep

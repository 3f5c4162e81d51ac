#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace lockstep {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // bits reversed

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)

// The instruction takes three cycles to answer and one to be issued: three stretches of this many bytes go
// side by side. Joining them costs eight look-ups, little beside a stretch.
constexpr size_t kStretch = 128;

// What a register becomes after kStretch zero bytes, by its four bytes: the map is linear.
using ShiftTable = std::array<std::array<uint32_t, 256>, 4>;

constexpr ShiftTable make_shift_table() {
  std::array<uint32_t, 32> basis{};
  for (size_t bit = 0; bit < 32; ++bit) {
    uint32_t value = uint32_t{1} << bit;
    for (size_t i = 0; i < kStretch; ++i) value = (value >> 8) ^ kTable[value & 0xff];
    basis[bit] = value;
  }
  ShiftTable table{};
  for (size_t byte = 0; byte < 4; ++byte)
    for (size_t i = 0; i < 256; ++i)
      for (size_t bit = 0; bit < 8; ++bit)
        if ((i >> bit & 1) != 0) table[byte][i] ^= basis[8 * byte + bit];
  return table;
}

constexpr ShiftTable kShift = make_shift_table();

uint64_t shifted(uint64_t crc) {
  return kShift[0][crc & 0xff] ^ kShift[1][crc >> 8 & 0xff] ^ kShift[2][crc >> 16 & 0xff] ^
         kShift[3][crc >> 24 & 0xff];
}

uint64_t word_at(const char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

[[gnu::target("sse4.2")]] uint32_t crc32c_instruction(std::string_view bytes) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t crc = ~uint32_t{0};
  for (; left >= 3 * kStretch; at += 3 * kStretch, left -= 3 * kStretch) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kStretch; i += 8) {
      crc = _mm_crc32_u64(crc, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + kStretch + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * kStretch + i));
    }
    crc = shifted(shifted(crc) ^ second) ^ third;
  }
  for (; left >= 8; at += 8, left -= 8) crc = _mm_crc32_u64(crc, word_at(at));
  auto rest = static_cast<uint32_t>(crc);
  for (; left > 0; ++at, --left) rest = _mm_crc32_u8(rest, static_cast<uint8_t>(*at));
  return ~rest;
}

#endif

}  // namespace

uint32_t crc32c_portable(std::string_view bytes) {
  uint32_t value = ~uint32_t{0};
  for (const char c : bytes) value = (value >> 8) ^ kTable[(value ^ static_cast<uint8_t>(c)) & 0xff];
  return ~value;
}

uint32_t crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool kInstruction = __builtin_cpu_supports("sse4.2") != 0;
  if (kInstruction) return crc32c_instruction(bytes);
#endif
  return crc32c_portable(bytes);
}

}  // namespace lockstep

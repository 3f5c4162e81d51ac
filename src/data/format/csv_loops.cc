// The loops over numbers are bound by how many instructions a field takes: tables, not arithmetic, and what
// is wrong with a field is only collected.
#include "data/format/csv_loops.h"

#include <immintrin.h>

namespace lockstep {
namespace {

// 64 bytes, asked for what equals something: a bit for each.
struct Chunk {
  explicit Chunk(const char* at)
      : low(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))),
        above(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32))) {}
  static uint64_t joined(__m256i a, __m256i b) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(a)) |
           uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(b))} << 32;
  }
  uint64_t equal(char c) const {
    const __m256i wanted = _mm256_set1_epi8(c);
    return joined(_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(above, wanted));
  }
  uint64_t high() const { return joined(low, above); }

  __m256i low, above;
};

// Bit i is the parity of bits 0 to i.
inline uint64_t prefix_parity(uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

inline uint32_t lowest(uint64_t bits) { return static_cast<uint32_t>(__builtin_ctzll(bits)); }
inline uint32_t count(uint64_t bits) { return static_cast<uint32_t>(__builtin_popcountll(bits)); }

// Eight at a time: how many there are is hard to foresee, how many times eight is not. What is written beyond
// the last is overwritten by the next.
inline uint32_t* put_positions(uint64_t bits, uint32_t at, uint32_t* out) {
  const uint32_t all = count(bits);
  for (uint32_t done = 0; done < all; done += 8)
    for (int i = 0; i < 8; ++i) {
      out[done + static_cast<uint32_t>(i)] = at + (bits == 0 ? 0 : lowest(bits));
      bits &= bits - 1;
    }
  return out + all;
}

}  // namespace

bool has_csv_loops() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0; }

void csv_scan(const char* text, size_t size, char separator, CsvMarks& marks) {
  uint32_t* out = marks.ends;
  uint32_t* line = marks.lines;
  uint64_t inside = 0;  // all ones where the chunk begins in quotes
  uint64_t any_quote = 0, any_high = 0;
  for (size_t at = 0; at < size; at += 64) {
    const Chunk chunk(text + at);
    const uint64_t valid = size - at >= 64 ? ~uint64_t{0} : (uint64_t{1} << (size - at)) - 1;
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
    for (; newlines != 0; newlines &= newlines - 1) {
      const uint64_t up_to = newlines ^ (newlines - 1);
      *line++ = static_cast<uint32_t>(out - marks.ends) + count(ends & up_to);
    }
    out = put_positions(ends, static_cast<uint32_t>(at), out);
  }
  marks.end_count = static_cast<size_t>(out - marks.ends);
  marks.line_count = static_cast<size_t>(line - marks.lines);
  marks.quotes = any_quote != 0;
  marks.open_quote = inside != 0;
  marks.non_ascii = any_high != 0;
}

namespace {

// Bytes of a number without its sign: so many digits are a whole number that a double holds.
constexpr uint32_t kMostBytes = 15;

// How to bring the digits of a field of so many bytes to the end of 16, without its point, which stands there
// (or behind it: there is none); 128 makes a 0. And what to divide by then: it also has the sign, so that 0
// gets one, too.
struct Tables {
  alignas(64) uint8_t places[32][32][16];  // by size and point
  double powers[2][32];                    // by sign and the bytes from the point on

  constexpr Tables() : places(), powers() {
    for (int size = 0; size < 32; ++size)
      for (int point = 0; point < 32; ++point) {
        const int digits = point < size ? size - 1 : size;
        for (int i = 0; i < 16; ++i) {
          const int from = i - (16 - digits);
          places[size][point][i] = static_cast<uint8_t>(from < 0 || digits > 16 ? 128
                                                        : from < point          ? from
                                                                                : from + 1);
        }
      }
    double power = 1;
    for (int bytes = 0; bytes < 32; ++bytes) {
      powers[0][bytes] = power;
      powers[1][bytes] = -power;
      if (bytes > 0 && bytes <= 15) power *= 10;
    }
  }
};
constexpr Tables kTables;

struct Field {
  const char* at;  // behind the sign
  uint32_t size;   // without the sign
  uint32_t negative;
};

template <bool kLast>
inline Field field_of(const CsvColumn& column, const uint32_t* mark) {
  const uint32_t from = mark[0] + 1;
  uint32_t to = mark[1];
  if (kLast && to > from && to < column.size && column.text[to - 1] == '\r') --to;
  const uint32_t negative = column.text[from] == '-' ? 1 : 0;
  return {column.text + from + negative, to - from - negative, negative};
}

// The first bytes of a field as values of digits; a bit for each that is none, and for each that is a point.
struct Digits {
  __m128i values;
  uint32_t others, points;

  Digits(const char* at, uint32_t size)
      : values(_mm_sub_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), _mm_set1_epi8('0'))) {
    const __m128i above = _mm_subs_epu8(values, _mm_set1_epi8(9));
    const auto digits = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(above, _mm_setzero_si128())));
    others = _bzhi_u32(~digits, size);
    points = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(values, _mm_set1_epi8('.' - '0'))));
  }
  // `size` and `point` are below 32.
  __m128i aligned(uint32_t size, uint32_t point) const {
    const auto* places = reinterpret_cast<const __m128i*>(kTables.places);
    return _mm_shuffle_epi8(values, _mm_load_si128(places + (size << 5 | point)));
  }
};

// The upper and lower eight of 16 digits each, of four numbers, as whole numbers in 64 bits.
struct Halves {
  __m256i upper, lower;

  explicit Halves(const __m128i* rows) {
    const auto* pairs = reinterpret_cast<const __m256i*>(rows);
    const __m256i packed =
        _mm256_packus_epi32(by_four(_mm256_load_si256(pairs)), by_four(_mm256_load_si256(pairs + 1)));
    const __m256i eights = _mm256_madd_epi16(packed, _mm256_set1_epi32(0x00012710));  // 10000 a + b
    const __m256i ordered = _mm256_permute4x64_epi64(eights, _MM_SHUFFLE(3, 1, 2, 0));
    upper = _mm256_and_si256(ordered, _mm256_set1_epi64x(0xffffffff));
    lower = _mm256_srli_epi64(ordered, 32);
  }
  static __m256i by_four(__m256i ones) {
    const __m256i tens = _mm256_maddubs_epi16(ones, _mm256_set1_epi16(0x010a));  // 10 a + b
    return _mm256_madd_epi16(tens, _mm256_set1_epi32(0x00010064));               // 100 a + b
  }
};

// Of whole numbers below 2^52, which are the low bits of 2^52 and them.
inline __m256d doubles_of(__m256i wholes) {
  const __m256d offset = _mm256_set1_pd(4503599627370496.0);
  return _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(wholes), offset), offset);
}

// Two loops: one finds the digits, where what to do follows from each byte; one makes numbers of them, four
// at a time.

struct Rows {
  alignas(64) __m128i digits[kCsvRows];
  alignas(64) uint32_t wrong[kCsvRows];  // something, or nothing

  // Lists the records that are to be looked at more closely.
  size_t list(size_t records, uint32_t* left) const {
    uint32_t any = 0;
    for (size_t r = 0; r < records; ++r) any |= wrong[r];
    if (any == 0) return 0;
    size_t count = 0;
    for (size_t r = 0; r < records; ++r)
      if (wrong[r] != 0) left[count++] = static_cast<uint32_t>(r);
    return count;
  }
};

// A whole number of 15 digits and a power of ten are exact, so that one division rounds correctly.
template <bool kLast>
size_t reals_of(const CsvColumn& column, double* out, uint32_t* left) {
  Rows rows;
  alignas(64) double numbers[kCsvRows], divisors[kCsvRows];
  const uint32_t* marks = column.marks + column.place;
  const size_t records = column.records;
  for (size_t r = 0; r < records; ++r) {
    const Field field = field_of<kLast>(column, marks + column.fields[r]);
    const uint32_t size = field.size & 31;
    const Digits found(field.at, size);
    const uint32_t point = lowest(found.others | 1U << size);
    rows.digits[r] = found.aligned(size, point);
    divisors[r] = kTables.powers[field.negative][size - point];
    // No digit and no point, two points, a point at the end, too long or nothing at all.
    rows.wrong[r] = (found.others & ~found.points) | (found.others & (found.others - 1)) |
                    (found.others >> ((size - 1) & 31)) | (field.size - 1 >= kMostBytes ? 1 : 0);
  }
  for (size_t r = 0; r < records; r += 4) {
    const Halves halves(rows.digits + r);
    const __m256d upper = _mm256_mul_pd(doubles_of(halves.upper), _mm256_set1_pd(1e8));
    _mm256_store_pd(numbers + r, _mm256_add_pd(upper, doubles_of(halves.lower)));
  }
  for (size_t r = 0; r < records; ++r) out[r] = numbers[r] / divisors[r];
  return rows.list(records, left);
}

template <bool kLast>
size_t wholes_of(const CsvColumn& column, int64_t* out, uint32_t* left) {
  Rows rows;
  alignas(64) int64_t numbers[kCsvRows], signs[kCsvRows];
  const uint32_t* marks = column.marks + column.place;
  const size_t records = column.records;
  for (size_t r = 0; r < records; ++r) {
    const Field field = field_of<kLast>(column, marks + column.fields[r]);
    const uint32_t size = field.size & 31;
    const Digits found(field.at, size);
    rows.digits[r] = found.aligned(size, 31);
    rows.wrong[r] = found.others | (field.size - 1 >= kMostBytes ? 1 : 0);
    signs[r] = -static_cast<int64_t>(field.negative);
  }
  for (size_t r = 0; r < records; r += 4) {
    const Halves halves(rows.digits + r);
    const __m256i upper = _mm256_mul_epu32(halves.upper, _mm256_set1_epi64x(100000000));
    _mm256_store_si256(reinterpret_cast<__m256i*>(numbers + r), _mm256_add_epi64(upper, halves.lower));
  }
  for (size_t r = 0; r < records; ++r) out[r] = (numbers[r] ^ signs[r]) - signs[r];
  return rows.list(records, left);
}

}  // namespace

size_t csv_reals(const CsvColumn& column, double* out, uint32_t* left) {
  return column.last ? reals_of<true>(column, out, left) : reals_of<false>(column, out, left);
}

size_t csv_wholes(const CsvColumn& column, int64_t* out, uint32_t* left) {
  return column.last ? wholes_of<true>(column, out, left) : wholes_of<false>(column, out, left);
}

}  // namespace lockstep

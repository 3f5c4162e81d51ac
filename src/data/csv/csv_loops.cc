// The loops over numbers are bound by how many instructions a field takes: tables, not arithmetic, and what
// is wrong with a field is only collected.
#include "data/csv/csv_loops.h"

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

void scan(const char* text, size_t size, char separator, CsvMarks& marks) {
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

// Bytes of a number without its sign: so many digits are a whole number that a double holds.
constexpr uint32_t kMostBytes = 15;

// How to bring the digits of a field of so many bytes to the end of 16, without its point, which stands there
// (or behind it: there is none); 128 makes a 0, as a sign is. And what to divide by then: it also has the
// sign, so that 0 gets one, too.
struct Tables {
  alignas(64) uint8_t places[32][32][16];  // by size and point
  double powers[64];                       // by sign, which is bit 5, and the bytes from the point on

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
      powers[bytes] = power;
      powers[32 + bytes] = -power;
      if (bytes > 0 && bytes <= 15) power *= 10;
    }
  }
};
constexpr Tables kTables;

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

// The fields of one column, in several short loops: in one long loop everything about a field waits for what
// was found out about it before, and a processor looks ahead by too few fields to do something else
// meanwhile.
class Fields {
 public:
  // Real numbers may have a point.
  Fields(const CsvColumn& column, bool real) : records_(column.records) {
    if (column.last)
      place<true>(column);
    else
      place<false>(column);
    look(column.text);
    judge(real);
  }

  // The digits of a field, at the end of 16 bytes.
  __m128i digits(size_t r) const {
    const auto* places = reinterpret_cast<const __m128i*>(kTables.places);
    return _mm_shuffle_epi8(values_[r], _mm_load_si128(places + places_[r]));
  }
  double divisor(size_t r) const { return kTables.powers[powers_[r]]; }
  int64_t sign(size_t r) const { return -static_cast<int64_t>(powers_[r] >> 5); }

  // Lists the records that are to be looked at more closely.
  size_t list(uint32_t* left) const {
    uint32_t any = 0;
    for (size_t r = 0; r < records_; ++r) any |= wrong_[r];
    if (any == 0) return 0;
    size_t count = 0;
    for (size_t r = 0; r < records_; ++r)
      if (wrong_[r] != 0) left[count++] = static_cast<uint32_t>(r);
    return count;
  }

 private:
  // Where they are. Behind the last come empty ones, up to a multiple of eight.
  template <bool kLast>
  void place(const CsvColumn& column) {
    const uint32_t* marks = column.marks + column.place;
    for (size_t r = 0; r < records_; ++r) {
      const uint32_t* mark = marks + column.fields[r];
      const uint32_t from = mark[0] + 1;
      uint32_t to = mark[1];
      if (kLast && to > from && to < column.size && column.text[to - 1] == '\r') --to;
      from_[r] = from;
      sizes_[r] = to - from;
    }
    for (size_t r = records_; r % 8 != 0; ++r) from_[r] = sizes_[r] = 0;
  }

  // What their first 16 bytes are, two fields at a time: values of digits, 0 for others; and a bit for each
  // digit, point and minus.
  void look(const char* text) {
    const auto at = [&](size_t r) { return reinterpret_cast<const __m128i*>(text + from_[r]); };
    const auto mask = [](__m256i bytes, uint16_t* out) {
      const auto bits = static_cast<uint32_t>(_mm256_movemask_epi8(bytes));
      out[0] = static_cast<uint16_t>(bits);
      out[1] = static_cast<uint16_t>(bits >> 16);
    };
    for (size_t r = 0; r < records_; r += 2) {
      const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(at(r))),
                                                    _mm_loadu_si128(at(r + 1)), 1);
      const __m256i values = _mm256_sub_epi8(bytes, _mm256_set1_epi8('0'));
      const __m256i above = _mm256_subs_epu8(values, _mm256_set1_epi8(9));
      const __m256i digit = _mm256_cmpeq_epi8(above, _mm256_setzero_si256());
      _mm256_store_si256(reinterpret_cast<__m256i*>(values_ + r), _mm256_and_si256(values, digit));
      mask(digit, digits_ + r);
      mask(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('.')), points_ + r);
      mask(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('-')), minuses_ + r);
    }
  }

  // What is wrong with them, and which tables they take, eight at a time.
  void judge(bool real) {
    const __m256i one = _mm256_set1_epi32(1), low5 = _mm256_set1_epi32(31);
    const __m256i most = _mm256_set1_epi32(kMostBytes), allowed = _mm256_set1_epi32(real ? -1 : 0);
    const auto words = [](const uint16_t* at) {
      return _mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(at)));
    };
    const auto store = [](uint32_t* at, __m256i values) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(at), values);
    };
    for (size_t r = 0; r < records_; r += 8) {
      const __m256i size = _mm256_load_si256(reinterpret_cast<const __m256i*>(sizes_ + r));
      const __m256i end = _mm256_sllv_epi32(one, size);
      const __m256i minus = _mm256_and_si256(words(minuses_ + r), one);  // as the first byte
      const __m256i other =
          _mm256_andnot_si256(_mm256_or_si256(words(digits_ + r), minus), _mm256_sub_epi32(end, one));
      const __m256i point = _mm256_and_si256(words(points_ + r), allowed);
      // No digit and no point, two points, a point at the end, too long or nothing at all.
      const __m256i before = _mm256_sub_epi32(size, one);
      const __m256i length = _mm256_sub_epi32(before, minus);
      const __m256i no_digit = _mm256_andnot_si256(point, other);
      const __m256i several = _mm256_and_si256(other, _mm256_sub_epi32(other, one));
      const __m256i at_end = _mm256_srlv_epi32(other, before);
      const __m256i too_long = _mm256_cmpeq_epi32(_mm256_max_epu32(length, most), length);
      store(wrong_ + r,
            _mm256_or_si256(_mm256_or_si256(no_digit, several), _mm256_or_si256(at_end, too_long)));
      const __m256i stop = real ? lowest_bit(_mm256_or_si256(other, end)) : low5;
      store(places_ + r, _mm256_or_si256(_mm256_slli_epi32(_mm256_and_si256(size, low5), 5),
                                         _mm256_and_si256(stop, low5)));
      store(powers_ + r, _mm256_or_si256(_mm256_slli_epi32(minus, 5),
                                         _mm256_and_si256(_mm256_sub_epi32(size, stop), low5)));
    }
  }

  // The number of the lowest bit that is set: the exponent of what is left with it alone.
  static __m256i lowest_bit(__m256i bits) {
    const __m256i alone = _mm256_and_si256(bits, _mm256_sub_epi32(_mm256_setzero_si256(), bits));
    const __m256i exponent = _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(alone)), 23);
    return _mm256_sub_epi32(exponent, _mm256_set1_epi32(127));
  }

  size_t records_;
  alignas(64) uint32_t from_[kCsvRows], sizes_[kCsvRows];
  alignas(64) __m128i values_[kCsvRows];
  alignas(64) uint16_t digits_[kCsvRows], points_[kCsvRows], minuses_[kCsvRows];
  alignas(64) uint32_t wrong_[kCsvRows];                      // something, or nothing
  alignas(64) uint32_t places_[kCsvRows], powers_[kCsvRows];  // in the tables
};

// A whole number of 15 digits and a power of ten are exact, so that one division rounds correctly.
size_t reals(const CsvColumn& column, double* out, uint32_t* left) {
  const Fields fields(column, true);
  alignas(64) __m128i rows[kCsvRows];
  alignas(64) double numbers[kCsvRows], divisors[kCsvRows];
  const size_t records = column.records;
  for (size_t r = 0; r < records; ++r) {
    rows[r] = fields.digits(r);
    divisors[r] = fields.divisor(r);
  }
  for (size_t r = 0; r < records; r += 4) {
    const Halves halves(rows + r);
    const __m256d upper = _mm256_mul_pd(doubles_of(halves.upper), _mm256_set1_pd(1e8));
    _mm256_store_pd(numbers + r, _mm256_add_pd(upper, doubles_of(halves.lower)));
  }
  for (size_t r = 0; r < records; ++r) out[r] = numbers[r] / divisors[r];
  return fields.list(left);
}

size_t wholes(const CsvColumn& column, int64_t* out, uint32_t* left) {
  const Fields fields(column, false);
  alignas(64) __m128i rows[kCsvRows];
  alignas(64) int64_t numbers[kCsvRows];
  const size_t records = column.records;
  for (size_t r = 0; r < records; ++r) rows[r] = fields.digits(r);
  for (size_t r = 0; r < records; r += 4) {
    const Halves halves(rows + r);
    const __m256i upper = _mm256_mul_epu32(halves.upper, _mm256_set1_epi64x(100000000));
    _mm256_store_si256(reinterpret_cast<__m256i*>(numbers + r), _mm256_add_epi64(upper, halves.lower));
  }
  for (size_t r = 0; r < records; ++r) out[r] = (numbers[r] ^ fields.sign(r)) - fields.sign(r);
  return fields.list(left);
}

}  // namespace

const CsvLoops& avx2_csv_loops() {
  static constexpr CsvLoops kLoops{scan, reals, wholes};
  return kLoops;
}

}  // namespace lockstep

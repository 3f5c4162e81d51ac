#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "data/parquet/pages.h"
#include "data/parquet/thrift.h"

namespace lockstep::parquet {
namespace {

static_assert(std::endian::native == std::endian::little, "values are loaded as they lie");

// Throws Damaged where less is left than is taken.
class EncodedBytes {
 public:
  explicit EncodedBytes(std::string_view bytes) : left_(bytes) {}

  std::string_view take(uint64_t count) {
    if (count > left_.size()) throw Damaged("its values end too early");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto next = static_cast<uint8_t>(take(1)[0]);
      value |= static_cast<uint64_t>(next & 0x7f) << shift;
      if (next < 0x80) return value;
    }
    throw Damaged("a number is too long");
  }
  int64_t zigzag() {
    const uint64_t value = varint();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }
  uint32_t word() {
    uint32_t value = 0;
    std::memcpy(&value, take(4).data(), 4);
    return value;
  }
  std::string_view left() const { return left_; }

 private:
  std::string_view left_;
};

// Some of the numbers that lie in runs and bit-packed groups.
struct EncodedRun {
  size_t first = 0;
  size_t count = 0;
  const char* packed = nullptr;  // null: all of them are `value`
  uint32_t value = 0;
};

// The runs that hold `count` numbers of 1 to 32 bits, in their order.
class RunReader {
 public:
  RunReader(std::string_view bytes, int bits, size_t count)
      : left_(bytes), bits_(static_cast<size_t>(bits)), count_(count) {}

  // False once all numbers were given. Throws Damaged where the bytes end before that.
  bool next(EncodedRun& run) {
    if (done_ == count_) return false;
    const uint64_t head = left_.varint();
    const uint64_t length = head >> 1;
    run = {.first = done_};
    if ((head & 1) == 0) {
      const std::string_view value = left_.take((bits_ + 7) / 8);
      std::memcpy(&run.value, value.data(), value.size());
      run.count = std::min<uint64_t>(length, count_ - done_);
    } else if (length > 0) {
      // The last group may be cut where its numbers are not needed.
      run.count = std::min<uint64_t>(length > count_ ? count_ : length * 8, count_ - done_);
      const size_t left = left_.left().size();
      const size_t stored = std::min<uint64_t>(length > count_ ? left : length * bits_, left);
      if (stored < (run.count * bits_ + 7) / 8) throw Damaged("its values end too early");
      run.packed = left_.take(stored).data();
    }
    done_ += run.count;
    return true;
  }

 private:
  EncodedBytes left_;
  size_t bits_;
  size_t count_;
  size_t done_ = 0;
};

// Number `index` of a row of packed ones of 1 to 64 bits.
uint64_t packed(const char* bytes, uint64_t index, int bits) {
  const uint64_t at = index * static_cast<uint64_t>(bits);
  const int shift = static_cast<int>(at & 7);
  uint64_t low = 0;
  std::memcpy(&low, bytes + (at >> 3), 8);
  uint64_t value = low >> shift;
  if (shift + bits > 64)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[(at >> 3) + 8])) << (64 - shift);
  return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1);
}

template <typename T>
std::vector<T> plain_numbers(std::string_view bytes, size_t count) {
  if (bytes.size() / sizeof(T) < count) throw Damaged("its values end too early");
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  return values;
}

std::vector<uint8_t> plain_booleans(std::string_view bytes, size_t count) {
  if (bytes.size() < (count + 7) / 8) throw Damaged("its values end too early");
  std::vector<uint8_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<uint8_t>(static_cast<uint8_t>(bytes[i / 8]) >> (i % 8) & 1);
  return values;
}

std::vector<std::string_view> plain_texts(std::string_view bytes, size_t count) {
  if (bytes.size() / 4 < count) throw Damaged("its values end too early");
  std::vector<std::string_view> values(count);
  EncodedBytes left(bytes);
  for (std::string_view& value : values) value = left.take(left.word());
  return values;
}

std::vector<std::string_view> fixed_texts(std::string_view bytes, size_t count, size_t length) {
  if (length == 0) throw Damaged("its values have no length");
  if (bytes.size() / length < count) throw Damaged("its values end too early");
  std::vector<std::string_view> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = bytes.substr(i * length, length);
  return values;
}

// Byte k of every value lies in row k.
std::string unsplit(std::string_view bytes, size_t count, size_t width) {
  if (width == 0 || bytes.size() / width < count) throw Damaged("its values end too early");
  std::string out(count * width, '\0');
  for (size_t k = 0; k < width; ++k)
    for (size_t i = 0; i < count; ++i) out[i * width + k] = bytes[k * count + i];
  return out;
}

std::vector<std::string_view> delta_length_texts(std::string_view bytes, size_t count) {
  std::vector<int64_t> lengths;
  EncodedBytes left(bytes);
  left.take(decode_delta(bytes, count, lengths));
  std::vector<std::string_view> values(count);
  for (size_t i = 0; i < count; ++i) {
    if (lengths[i] < 0) throw Damaged("a value has a negative length");
    values[i] = left.take(static_cast<uint64_t>(lengths[i]));
  }
  return values;
}

// Each value begins with some bytes of the one before it. The repeated bytes may add up to far more than the
// page holds, so that what they come to is bounded.
std::vector<std::string_view> delta_texts(std::string_view bytes, size_t count, std::string& heap) {
  std::vector<int64_t> prefixes;
  const size_t used = decode_delta(bytes, count, prefixes);
  const std::vector<std::string_view> ends = delta_length_texts(bytes.substr(used), count);
  constexpr uint64_t kMostBytes = uint64_t{1} << 28;
  uint64_t all = 0;
  uint64_t before = 0;
  for (size_t i = 0; i < count; ++i) {
    if (prefixes[i] < 0 || static_cast<uint64_t>(prefixes[i]) > before)
      throw Damaged("a value shares more bytes with the one before than that has");
    before = static_cast<uint64_t>(prefixes[i]) + ends[i].size();
    all += before;
    if (all > kMostBytes) throw Damaged("its values come to more than 256 MiB; write smaller pages");
  }
  heap.resize(all);
  std::vector<std::string_view> values(count);
  char* out = heap.data();
  for (size_t i = 0; i < count; ++i) {
    const auto shared = static_cast<size_t>(prefixes[i]);
    if (shared > 0) std::memcpy(out, values[i - 1].data(), shared);
    if (!ends[i].empty()) std::memcpy(out + shared, ends[i].data(), ends[i].size());
    values[i] = {out, shared + ends[i].size()};
    out += values[i].size();
  }
  return values;
}

PlainValues plain(const Leaf& leaf, std::string_view bytes, size_t count) {
  switch (leaf.physical) {
    case Physical::kBoolean: return {plain_booleans(bytes, count), {}};
    case Physical::kInt32: return {plain_numbers<int32_t>(bytes, count), {}};
    case Physical::kInt64: return {plain_numbers<int64_t>(bytes, count), {}};
    case Physical::kFloat: return {plain_numbers<float>(bytes, count), {}};
    case Physical::kDouble: return {plain_numbers<double>(bytes, count), {}};
    case Physical::kByteArray: return {plain_texts(bytes, count), {}};
    case Physical::kFixed: return {fixed_texts(bytes, count, static_cast<size_t>(leaf.fixed_length)), {}};
    case Physical::kInt96: break;
  }
  throw Damaged("its type is not supported");
}

size_t width_of(const Leaf& leaf) {
  switch (leaf.physical) {
    case Physical::kInt32:
    case Physical::kFloat: return 4;
    case Physical::kInt64:
    case Physical::kDouble: return 8;
    case Physical::kFixed: return static_cast<size_t>(leaf.fixed_length);
    default: throw Damaged("its values cannot be split into bytes");
  }
}

}  // namespace

void decode_rle(std::string_view bytes, int bits, size_t first, size_t count, std::vector<uint32_t>& out) {
  if (bits < 0 || bits > 32) throw Damaged(fmt::format("it has levels or indices of {} bits", bits));
  out.resize(count);
  if (bits == 0) return std::fill(out.begin(), out.end(), 0u);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  RunReader reader(bytes, bits, first + count);
  for (EncodedRun run; reader.next(run);) {
    if (run.first + run.count <= first) continue;
    const size_t from = std::max(first, run.first);
    uint32_t* to = out.data() + (from - first);
    const size_t numbers = run.first + run.count - from;
    if (run.packed == nullptr) {
      std::fill_n(to, numbers, run.value);
      continue;
    }
    // None of them reaches into a second word.
    uint64_t at = (from - run.first) * static_cast<uint64_t>(bits);
    for (size_t i = 0; i < numbers; ++i, at += static_cast<uint64_t>(bits)) {
      uint64_t word = 0;
      std::memcpy(&word, run.packed + (at >> 3), 8);
      to[i] = static_cast<uint32_t>(word >> (at & 7) & mask);
    }
  }
}

bool is_run_of(std::string_view bytes, int bits, size_t count, uint32_t value) {
  if (bits < 1 || bits > 32) return false;
  RunReader reader(bytes, bits, count);
  for (EncodedRun run; reader.next(run);)
    if (run.packed != nullptr || run.value != value) return false;
  return true;
}

size_t decode_delta(std::string_view bytes, size_t count, std::vector<int64_t>& out) {
  EncodedBytes left(bytes);
  const uint64_t block = left.varint();
  const uint64_t parts = left.varint();
  const uint64_t total = left.varint();
  uint64_t value = static_cast<uint64_t>(left.zigzag());
  if (parts == 0 || block == 0 || block % 128 != 0 || block > (1u << 20) || block % parts != 0 ||
      block / parts % 32 != 0)
    throw Damaged("its packed differences have a wrong layout");
  if (total != count) throw Damaged(fmt::format("it has {} packed differences instead of {}", total, count));
  const uint64_t part = block / parts;
  out.resize(count);
  if (count > 0) out[0] = static_cast<int64_t>(value);
  for (size_t done = 1; done < count;) {
    const auto least = static_cast<uint64_t>(left.zigzag());
    const std::string_view widths = left.take(parts);
    for (uint64_t p = 0; p < parts && done < count; ++p) {
      const int bits = static_cast<uint8_t>(widths[p]);
      if (bits > 64) throw Damaged(fmt::format("its packed differences have {} bits", bits));
      const char* from = left.take(part * static_cast<uint64_t>(bits) / 8).data();
      for (uint64_t i = 0; i < part && done < count; ++i, ++done) {
        value += least + (bits == 0 ? 0 : packed(from, i, bits));
        out[done] = static_cast<int64_t>(value);
      }
    }
  }
  return bytes.size() - left.left().size();
}

PlainValues decode_values(Encoding encoding, const Leaf& leaf, std::string_view bytes, size_t count) {
  const bool texts = leaf.physical == Physical::kByteArray;
  switch (encoding) {
    case Encoding::kPlain: return plain(leaf, bytes, count);
    case Encoding::kRle: {
      if (leaf.physical != Physical::kBoolean) break;
      EncodedBytes left(bytes);
      const std::string_view runs = left.take(left.word());
      std::vector<uint32_t> flags;
      decode_rle(runs, 1, 0, count, flags);
      return {std::vector<uint8_t>(flags.begin(), flags.end()), {}};
    }
    case Encoding::kDeltaBinaryPacked: {
      if (leaf.physical != Physical::kInt32 && leaf.physical != Physical::kInt64) break;
      std::vector<int64_t> numbers;
      decode_delta(bytes, count, numbers);
      if (leaf.physical == Physical::kInt64) return {std::move(numbers), {}};
      std::vector<int32_t> shorter(count);
      for (size_t i = 0; i < count; ++i) shorter[i] = static_cast<int32_t>(numbers[i]);
      return {std::move(shorter), {}};
    }
    case Encoding::kDeltaLengthByteArray:
      if (!texts) break;
      return {delta_length_texts(bytes, count), {}};
    case Encoding::kDeltaByteArray: {
      if (!texts && leaf.physical != Physical::kFixed) break;
      auto heap = std::make_shared<std::string>();
      auto values = delta_texts(bytes, count, *heap);
      return {std::move(values), std::move(heap)};
    }
    case Encoding::kByteStreamSplit: {
      const auto heap = std::make_shared<std::string>(unsplit(bytes, count, width_of(leaf)));
      return {plain(leaf, *heap, count).values, heap};
    }
    default: break;
  }
  throw Damaged(
      fmt::format("the encoding {} of its pages is not supported for its type; write it with dictionary or "
                  "plain encoding",
                  name_of(encoding)));
}

std::string_view name_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::kPlain: return "PLAIN";
    case Encoding::kPlainDictionary: return "PLAIN_DICTIONARY";
    case Encoding::kRle: return "RLE";
    case Encoding::kBitPacked: return "BIT_PACKED";
    case Encoding::kDeltaBinaryPacked: return "DELTA_BINARY_PACKED";
    case Encoding::kDeltaLengthByteArray: return "DELTA_LENGTH_BYTE_ARRAY";
    case Encoding::kDeltaByteArray: return "DELTA_BYTE_ARRAY";
    case Encoding::kRleDictionary: return "RLE_DICTIONARY";
    case Encoding::kByteStreamSplit: return "BYTE_STREAM_SPLIT";
  }
  return "that is unknown";
}

}  // namespace lockstep::parquet

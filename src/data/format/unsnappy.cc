#include "data/format/unsnappy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace lockstep {
namespace {

constexpr size_t kStep = 16;  // bytes that are copied at a time
constexpr size_t kTag = 5;    // bytes of the longest one
constexpr size_t kLongestCopy = 64;
constexpr size_t kWordLiteral = 4;               // with what follows it
constexpr size_t kInlineLiteral = 60;            // longer ones have their length in 1 to 4 bytes
constexpr size_t kSlack = kLongestCopy + kStep;  // what may be written behind the end of a copy

// Numbers of 64 bits that are small: a literal of 1 to 3 bytes, and a copy of the others from one before.
// They are looked for again after so many bytes of something else, sooner where there were many.
constexpr size_t kNumber = 8;
constexpr size_t kManyNumbers = 4;
constexpr size_t kLookSoon = 16, kLookLater = 4096;

// A copy: its length, and the part of how far back it is that its first byte holds.
struct CopyTag {
  uint8_t length;
  uint8_t more;  // bytes that follow
  uint16_t back;
};

constexpr std::array<CopyTag, 256> kCopies = [] {
  std::array<CopyTag, 256> tags{};
  for (unsigned tag = 0; tag < 256; ++tag) {
    if ((tag & 3) == 1)
      tags[tag] = {static_cast<uint8_t>((tag >> 2 & 7) + 4), 1, static_cast<uint16_t>(tag >> 5 << 8)};
    else
      tags[tag] = {static_cast<uint8_t>((tag >> 2) + 1), static_cast<uint8_t>((tag & 3) == 2 ? 2 : 4), 0};
  }
  return tags;
}();
constexpr std::array<uint32_t, 3> kMasks{0, 0xff, 0xffff};

// The same for a copy behind a short literal, in one word; too long where it is none of these.
struct PairTag {
  uint16_t length;
  uint16_t back;
  uint32_t mask;  // of the bytes that follow
};

constexpr std::array<PairTag, 256> kPairs = [] {
  std::array<PairTag, 256> tags{};
  for (unsigned tag = 0; tag < 256; ++tag) {
    const CopyTag copy = kCopies[tag];
    const bool is_near = (tag & 3) == 1 || (tag & 3) == 2;
    if (is_near)
      tags[tag] = {copy.length, copy.back, kMasks[copy.more]};
    else
      tags[tag] = {kNumber + 1, 0, 0};
  }
  return tags;
}();
constexpr std::array<uint64_t, 3> kLiteral{0xff, 0xffff, 0xffffff};

uint64_t load64(const char* from) {
  uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void copy_step(const char* from, char* to) {
  std::array<char, kStep> some;
  std::memcpy(some.data(), from, kStep);
  std::memcpy(to, some.data(), kStep);
}

// What is copied may be part of what it gives: a pattern that is repeated.
void copy_back(size_t back, size_t length, char* to) {
  if (back >= length) {
    std::memcpy(to, to - back, length);
    return;
  }
  const char* const from = to - back;
  for (size_t i = 0; i < length; ++i) to[i] = from[i];
}

class Unpacking {
 public:
  Unpacking(std::string_view stored, std::span<char> out)
      : in_(stored.data()),
        in_end_(in_ + stored.size()),
        begin_(out.data()),
        out_(begin_),
        out_end_(begin_ + out.size()) {}

  bool run() {
    if (!take_size()) return false;
    while (in_ < in_end_) {
      const bool many = take_numbers() >= kManyNumbers;
      const char* const pause =
          out_ + std::min(many ? kLookSoon : kLookLater, static_cast<size_t>(out_end_ - out_));
      if (!take_fast(pause)) return false;
      const bool paused = out_ >= pause && is_far(in_, out_);
      if (!paused && in_ < in_end_ && !take_one()) return false;
    }
    return out_ == out_end_;
  }

 private:
  bool take_size() {
    uint64_t size = 0;
    for (int shift = 0; shift <= 28 && in_ < in_end_; shift += 7) {
      const auto next = static_cast<uint8_t>(*in_++);
      size |= uint64_t{next & 0x7fu} << shift;
      if (next < 0x80) return size == static_cast<size_t>(out_end_ - begin_);
    }
    return false;
  }

  // Whether any tag but a long literal can be taken without looking at the ends.
  bool is_far(const char* in, const char* out) const {
    return static_cast<size_t>(in_end_ - in) >= kTag + kStep && static_cast<size_t>(out_end_ - out) >= kSlack;
  }

  // As long as nothing near either end has to be looked at, and literals are short. False: something is
  // wrong. A few bytes and a copy of what stood elsewhere, again and again, are what numbers become: both are
  // taken from one word.
  bool take_fast(const char* pause) {
    const char* in = in_;
    char* out = out_;
    if (!is_far(in, out)) return true;
    const char* const in_last = in_end_ - (kTag + kStep);
    const char* const out_last = std::min<const char*>(pause, out_end_ - kSlack);
    while (in <= in_last && out <= out_last) {
      uint64_t word = load64(in);
      if ((word & 3) == 0) {
        const size_t length = (word >> 2 & 63) + 1;
        if (length > kWordLiteral) {
          if (length > kStep) break;
          copy_step(in + 1, out);
          in += 1 + length;
          out += length;
          continue;
        }
        word >>= 8;
        std::memcpy(out, &word, sizeof word);
        // Where the next word lies is what everything waits for: most literals are one byte, and what can be
        // foreseen takes no time.
        if (length == 1) {
          out += 1;
          in += 2;
          word >>= 8;
        } else {
          out += length;
          in += 1 + length;
          word >>= 8 * length;
        }
        if ((word & 3) == 0) continue;
      }
      const auto tag = static_cast<uint8_t>(word);
      if ((tag & 3) == 3) break;
      const CopyTag copy = kCopies[tag];
      const size_t back = copy.back + (word >> 8 & kMasks[copy.more]);
      if (back - 1 >= static_cast<size_t>(out - begin_)) return false;
      in += 1 + (tag & 3);
      if (back >= kStep) {
        copy_step(out - back, out);
        for (size_t done = kStep; done < copy.length; done += kStep) copy_step(out - back + done, out + done);
      } else {
        copy_back(back, copy.length, out);
      }
      out += copy.length;
    }
    in_ = in;
    out_ = out;
    return true;
  }

  // As many numbers as follow here. Where the next pair begins is what everything waits for. Its word is
  // therefore loaded from where it lies if the copy takes two bytes, before it is known whether it takes
  // three, and moved by one if so; that leaves seven bytes of it, which is what the longest pair takes. The
  // number is put together before it is stored: what is stored in parts cannot be loaded again at once.
  size_t take_numbers() {
    const char* in = in_;
    char* out = out_;
    if (!is_far(in, out) || static_cast<size_t>(out - begin_) < kNumber) return 0;
    for (uint64_t pair = load64(in); (pair & 0xf3) == 0 && is_far(in, out);) {
      const size_t literal = pair >> 2 & 3;  // less 1
      const uint64_t behind = pair >> (literal * 8 + 16);
      const PairTag copy = kPairs[behind & 0xff];
      const size_t back = copy.back + (behind >> 8 & copy.mask);
      const uint64_t next = load64(in + 4 + literal);
      if (literal == 3 || literal + 1 + copy.length != kNumber ||
          back - kNumber > static_cast<size_t>(out - begin_) - kNumber)
        break;
      const uint64_t before = load64(out - back);
      const uint64_t number = before ^ ((before ^ pair >> 8) & kLiteral[literal]);
      std::memcpy(out, &number, sizeof number);
      const size_t more = behind & 3;
      pair = next >> (more * 8 - 8);
      out += kNumber;
      in += 3 + literal + more;
    }
    const auto bytes = static_cast<size_t>(out - out_);
    in_ = in;
    out_ = out;
    return bytes / kNumber;
  }

  bool take_one() {
    const auto tag = static_cast<uint8_t>(*in_++);
    const auto left = [&] { return static_cast<size_t>(in_end_ - in_); };
    const auto number = [&](size_t bytes) {
      uint32_t value = 0;
      std::memcpy(&value, in_, bytes);
      in_ += bytes;
      return value;
    };
    const auto room = static_cast<size_t>(out_end_ - out_);
    if ((tag & 3) == 0) {
      size_t length = (tag >> 2) + size_t{1};
      if (length > kInlineLiteral) {
        if (length - kInlineLiteral > left()) return false;
        length = size_t{number(length - kInlineLiteral)} + 1;
      }
      if (length > left() || length > room) return false;
      std::memcpy(out_, in_, length);
      in_ += length;
      out_ += length;
      return true;
    }
    const CopyTag copy = kCopies[tag];
    if (copy.more > left()) return false;
    const size_t back = copy.back + size_t{number(copy.more)};
    if (back == 0 || back > static_cast<size_t>(out_ - begin_) || copy.length > room) return false;
    copy_back(back, copy.length, out_);
    out_ += copy.length;
    return true;
  }

  const char* in_;
  const char* in_end_;
  char* begin_;
  char* out_;
  char* out_end_;
};

}  // namespace

bool unsnappy(std::string_view stored, std::span<char> out) { return Unpacking(stored, out).run(); }

}  // namespace lockstep

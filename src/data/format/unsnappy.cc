#include "data/format/unsnappy.h"

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
    while (take_fast() && in_ < in_end_)
      if (!take_one()) return false;
    return !failed_ && in_ == in_end_ && out_ == out_end_;
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

  // As long as nothing near either end has to be looked at, and literals are short. False: something is
  // wrong. A few bytes and a copy of what stood elsewhere, again and again, are what numbers become: both are
  // taken from one word.
  bool take_fast() {
    const char* in = in_;
    char* out = out_;
    while (static_cast<size_t>(in_end_ - in) >= kTag + kStep &&
           static_cast<size_t>(out_end_ - out) >= kSlack) {
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
      if (back - 1 >= static_cast<size_t>(out - begin_)) {
        failed_ = true;
        return false;
      }
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
  bool failed_ = false;
};

}  // namespace

bool unsnappy(std::string_view stored, std::span<char> out) { return Unpacking(stored, out).run(); }

}  // namespace lockstep

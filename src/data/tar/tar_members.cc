#include "data/tar/tar_members.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr int64_t kBlock = 512;
constexpr int64_t kMostText = 1 << 20;  // bytes of a long name or of pax keys

using Header = std::array<char, kBlock>;

std::string_view field(const Header& header, size_t at, size_t count) {
  const std::string_view whole(header.data() + at, count);
  return whole.substr(0, whole.find('\0'));
}

// Octal digits with blanks around them, or 8 or 12 bytes of a binary number whose first bit is set.
std::optional<int64_t> number(const Header& header, size_t at, size_t count) {
  if ((static_cast<unsigned char>(header[at]) & 0x80) != 0) {
    uint64_t value = static_cast<unsigned char>(header[at]) & 0x7f;
    for (size_t i = 1; i < count; ++i) {
      if (value > (uint64_t{1} << 54)) return {};
      value = value << 8 | static_cast<unsigned char>(header[at + i]);
    }
    return static_cast<int64_t>(value);
  }
  int64_t value = 0;
  std::string_view digits = field(header, at, count);
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return {};
    value = value * 8 + (digit - '0');
  }
  return value;
}

// Of all bytes, with blanks in the place of the sum itself.
bool is_sound(const Header& header) {
  int64_t sum = 0;
  for (size_t i = 0; i < header.size(); ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return number(header, 148, 8) == sum;
}

struct PaxKeys {
  std::optional<std::string> path;
  std::optional<int64_t> size;
};

// Lines "LENGTH KEY=VALUE\n", where the length counts the whole line. False: not that.
bool parse_pax(std::string_view text, PaxKeys& keys) {
  while (!text.empty()) {
    size_t length = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<size_t>(end - text.data());
    if (failure != std::errc() || length > text.size() || length < digits + 2 || text[digits] != ' ' ||
        text[length - 1] != '\n')
      return false;
    const std::string_view line = text.substr(digits + 1, length - digits - 2);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = line.substr(0, equals), value = line.substr(equals + 1);
    if (key == "path") keys.path = value;
    if (key == "size") {
      int64_t size = 0;
      const auto [last, wrong] = std::from_chars(value.data(), value.data() + value.size(), size);
      if (wrong != std::errc() || last != value.data() + value.size()) return false;
      keys.size = size;
    }
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

void TarMembers::refuse(int64_t offset, const std::string& problem) const {
  throw UserError("{} at byte {}: {}", archive_.name(), offset, problem);
}

std::string TarMembers::long_text(int64_t offset, int64_t bytes) const {
  if (bytes > kMostText) refuse(offset, fmt::format("a name of {} bytes", bytes));
  std::string text(static_cast<size_t>(bytes), '\0');
  archive_.read(offset, text);
  return text;
}

std::optional<TarMember> TarMembers::next() {
  std::optional<std::string> long_name;
  PaxKeys keys;
  for (;;) {
    if (offset_ + kBlock > archive_.size())
      refuse(offset_, "the archive ends without its end mark; it is cut");
    const int64_t at = offset_;
    Header header;
    archive_.read(at, header);
    if (std::all_of(header.begin(), header.end(), [](char c) { return c == 0; })) return {};
    if (!is_sound(header)) refuse(at, "not a header of a tar archive: its sum is wrong");
    const char type = header[156];
    const bool described = type != 'L' && type != 'K' && type != 'x' && type != 'g';
    const std::optional<int64_t> stored = number(header, 124, 12);
    const int64_t bytes = described && keys.size ? *keys.size : stored.value_or(-1);
    if (bytes < 0) refuse(at, "the size of a member is not a number");
    const int64_t data = at + kBlock;
    if (bytes > archive_.size() - data)
      refuse(at, fmt::format("a member of {} bytes, but only {} follow; the archive is cut", bytes,
                             archive_.size() - data));
    // The last block may lack its padding only where the archive is cut, which the next call finds.
    offset_ = std::min(data + (bytes + kBlock - 1) / kBlock * kBlock, archive_.size());
    if (type == 'L') {
      long_name = long_text(data, bytes);
      while (long_name->ends_with('\0')) long_name->pop_back();
    } else if (type == 'x') {
      if (!parse_pax(long_text(data, bytes), keys)) refuse(at, "the keys of a pax header cannot be read");
    } else if (type == 'S') {
      refuse(at, "a sparse file; store it whole");
    } else if (type == '0' || type == '\0' || type == '7') {
      TarMember member{{}, at, data, bytes};
      const std::string_view prefix = field(header, 345, 155);
      const bool ustar = field(header, 257, 5) == "ustar" && header[262] == '\0';
      member.name = field(header, 0, 100);
      if (ustar && !prefix.empty()) member.name = std::string(prefix) + "/" + member.name;
      if (long_name) member.name = *long_name;
      if (keys.path) member.name = *keys.path;
      return member;
    } else if (described) {
      // A folder or a link: what was said about it is not said about the next.
      long_name.reset();
      keys = {};
    }
  }
}

}  // namespace lockstep

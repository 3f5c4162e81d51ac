#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/images/image_shard.h"
#include "data/tar/tar_members.h"

namespace lockstep {
namespace {

constexpr int64_t kMostClassBytes = 1 << 20;

struct SampleName {
  std::string_view key, ending;
};

SampleName split_name(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  if (dot == std::string_view::npos) return {name, {}};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

std::string class_in_json(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return {};
  for (const char* key : {"label", "cls", "class"}) {
    const auto found = json.find(key);
    if (found == json.end()) continue;
    if (found->is_string()) return found->get<std::string>();
    if (found->is_number_integer()) return found->dump();
  }
  return {};
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  while (text.starts_with(' ')) text.erase(0, 1);
  return text;
}

// The members of one record as they are met.
struct Sample {
  std::string key;
  int64_t header = -1;  // of its first member; -1: none yet
  int64_t image = 0, image_bytes = 0, images = 0;
  std::string class_name;
  std::string problem;
};

class TarFormat : public Format {
 public:
  explicit TarFormat(const FormatOptions& options) : Format(options) {
    if (!options.settings.empty())
      throw UserError("tar has no setting '{}'; it has none", options.settings.begin()->first);
  }

  std::string_view name() const override { return "tar"; }
  int version() const override { return 1; }
  std::string_view suffix() const override { return ".tar"; }

  std::vector<BlockField> fields(const ByteSource&) const override { return image_fields_of(options()); }

  ShardIndex index(const ByteSource& shard, const Progress& progress) const override {
    ImageIndexBuilder images;
    std::vector<BadRecord> bad;
    TarMembers members(shard);
    Sample sample;
    int64_t reported = 0;
    try {
      while (const auto member = members.next()) {
        const SampleName name = split_name(member->name);
        if (sample.header < 0 || name.key != sample.key) {
          finish(shard, sample, images, bad);
          sample = {};
          sample.key = name.key;
          sample.header = member->header;
        }
        add(shard, *member, name.ending, sample);
        progress(members.offset() - reported);
        reported = members.offset();
      }
    } catch (const UserError& error) {
      // Nothing can be found after a damaged header; what came before is sound, but the record that it may
      // belong to is not.
      if (options().bad != BadRecords::kSkip) throw;
      bad.push_back({sample.header < 0 ? 0 : sample.header, error.what()});
      sample = {};
    }
    finish(shard, sample, images, bad);
    if (images.records() == 0 && bad.empty())
      throw UserError("{}: no images are in the archive; name them such as 000.jpg and 000.cls",
                      shard.name());
    ShardIndex index = images.finish(shard.size());
    index.bad = std::move(bad);
    return index;
  }

  std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const override {
    return std::make_unique<ImageDecoder>(shard, index);
  }

 private:
  static void add(const ByteSource& shard, const TarMember& member, std::string_view ending, Sample& sample) {
    std::string lower(ending);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (lower == "jpg" || lower == "jpeg" || lower == "png") {
      sample.image = member.offset;
      sample.image_bytes = member.bytes;
      ++sample.images;
    } else if (lower == "cls" || (lower == "json" && sample.class_name.empty())) {
      if (member.bytes > kMostClassBytes) {
        sample.problem = fmt::format("{} has {} bytes", member.name, member.bytes);
        return;
      }
      std::string text(static_cast<size_t>(member.bytes), '\0');
      shard.read(member.offset, text);
      sample.class_name = lower == "cls" ? trimmed(std::move(text)) : class_in_json(text);
    }
  }

  void finish(const ByteSource& shard, Sample& sample, ImageIndexBuilder& images,
              std::vector<BadRecord>& bad) const {
    if (sample.header < 0) return;
    const bool skip = options().bad == BadRecords::kSkip;
    if (sample.problem.empty() && sample.images != 1)
      sample.problem = fmt::format("record '{}' has {} images, not one", sample.key, sample.images);
    if (sample.problem.empty() && sample.class_name.empty())
      sample.problem = fmt::format("record '{}' has no class; add {}.cls", sample.key, sample.key);
    if (sample.problem.empty() && sample.image_bytes > kMostImageBytes)
      sample.problem = fmt::format("record '{}' has an image of {} bytes", sample.key, sample.image_bytes);
    if (sample.problem.empty() && skip)
      sample.problem = image_problem_at(shard, sample.image, sample.image_bytes);
    if (sample.problem.empty()) return images.add(sample.image, sample.image_bytes, sample.class_name);
    if (!skip) throw UserError("{} at byte {}: {}", shard.name(), sample.header, sample.problem);
    bad.push_back({sample.header, sample.problem});
  }
};

}  // namespace

std::unique_ptr<Format> make_tar_format(const FormatOptions& options) {
  return std::make_unique<TarFormat>(options);
}

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

#include <algorithm>
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

}  // namespace lockstep

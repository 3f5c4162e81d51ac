#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "data/bytes/files.h"
#include "data/bytes/folder_bytes.h"
#include "data/images/image_shard.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class FolderImageDecoder : public ImageDecoder {
 public:
  using ImageDecoder::ImageDecoder;

  std::string describe(int64_t record) const override {
    const auto offset = static_cast<int64_t>(index().offsets[static_cast<size_t>(record)]);
    for (const FolderFile& file : folder_files(bytes()))
      if (file.offset == offset && file.bytes > 0) return (fs::path(bytes().name()) / file.name).string();
    return ImageDecoder::describe(record);
  }
};

class ImagesFormat : public Format {
 public:
  explicit ImagesFormat(const FormatOptions& options) : Format(options) {
    if (!options.settings.empty())
      throw UserError("images has no setting '{}'; it has none", options.settings.begin()->first);
  }

  std::string_view name() const override { return "images"; }
  int version() const override { return 1; }

  std::vector<BlockField> fields(const ByteSource&) const override { return image_fields_of(options()); }

  ShardIndex index(const ByteSource& shard, const Progress& progress) const override {
    const std::string class_name = fs::path(shard.name()).filename().string();
    const bool skip = options().bad == BadRecords::kSkip;
    ImageIndexBuilder images;
    std::vector<BadRecord> bad;
    for (const FolderFile& file : folder_files(shard)) {
      std::string problem;
      if (file.bytes == 0)
        problem = "the file is empty";
      else if (file.bytes > kMostImageBytes)
        problem = fmt::format("{} bytes are not an image; at most {} are read", file.bytes, kMostImageBytes);
      else if (skip)
        problem = image_problem_at(shard, file.offset, file.bytes);
      if (problem.empty()) {
        images.add(file.offset, file.bytes, class_name);
      } else {
        problem = fmt::format("{}: {}", (fs::path(shard.name()) / file.name).string(), problem);
        if (!skip) throw UserError("{}", problem);
        bad.push_back({file.offset, problem});
      }
      progress(file.bytes);
    }
    ShardIndex index = images.finish(shard.size());
    index.bad = std::move(bad);
    return index;
  }

  std::unique_ptr<ShardDecoder> open(const ByteSource& shard, const ShardIndex& index) const override {
    return std::make_unique<FolderImageDecoder>(shard, index);
  }
};

}  // namespace

std::unique_ptr<Format> make_images_format(const FormatOptions& options) {
  return std::make_unique<ImagesFormat>(options);
}

std::vector<std::unique_ptr<ByteSource>> open_class_folders(const std::vector<std::string>& folders) {
  std::vector<std::string> paths;
  for (const std::string& pattern : folders)
    for (const std::string& folder : match_files(pattern)) {
      const size_t before = paths.size();
      if (fs::is_directory(folder))
        for (const auto& entry : fs::directory_iterator(folder))
          if (entry.is_directory() && !entry.path().filename().string().starts_with('.'))
            paths.push_back(entry.path().string());
      if (paths.size() == before)
        throw UserError("{} holds no folders; images lie in one folder per class, such as {}/cat/1.jpg",
                        folder, folder);
    }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.reserve(paths.size());
  for (const std::string& path : paths) shards.push_back(open_folder(path, {".jpg", ".jpeg", ".png"}));
  return shards;
}

}  // namespace lockstep

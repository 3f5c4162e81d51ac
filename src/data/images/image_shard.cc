#include "data/images/image_shard.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "data/bytes/files.h"
#include "data/bytes/folder_bytes.h"
#include "data/pixels/decode.h"

namespace lockstep {
namespace {

constexpr size_t kEntry = 16;  // bytes of the image, number of its class

void put(std::string& out, uint64_t value) { out.append(reinterpret_cast<const char*>(&value), 8); }

uint64_t take(std::string_view& left) {
  if (left.size() < 8) throw UserError("the index of images ends too early");
  uint64_t value = 0;
  std::memcpy(&value, left.data(), 8);
  left.remove_prefix(8);
  return value;
}

// `extra` of an index: how many classes, each with its length, then an entry per image.
std::vector<std::string> take_classes(std::string_view& left) {
  std::vector<std::string> classes;
  const uint64_t count = take(left);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t length = take(left);
    if (length > left.size()) throw UserError("the index of images ends too early");
    classes.emplace_back(left.substr(0, length));
    left.remove_prefix(length);
  }
  return classes;
}

}  // namespace

void ImageIndexBuilder::add(int64_t offset, int64_t bytes, std::string_view class_name) {
  auto found = classes_.find(class_name);
  if (found == classes_.end()) found = classes_.emplace(class_name, classes_.size()).first;
  images_.push_back({offset, bytes, found->second});
}

ShardIndex ImageIndexBuilder::finish(int64_t end) const {
  ShardIndex index;
  index.records = records();
  std::vector<std::string_view> names(classes_.size());
  for (const auto& [name, number] : classes_) names[number] = name;
  put(index.extra, names.size());
  for (const std::string_view name : names) {
    put(index.extra, name.size());
    index.extra += name;
  }
  for (const Image& image : images_) {
    index.offsets.push_back(static_cast<uint64_t>(image.offset));
    put(index.extra, static_cast<uint64_t>(image.bytes));
    put(index.extra, image.class_number);
  }
  index.offsets.push_back(static_cast<uint64_t>(end));
  return index;
}

std::vector<BlockField> image_fields_of(const FormatOptions& options) {
  if (!options.columns.empty()) throw UserError("images have columns of their own; ask for none by name");
  return {{"image", ValueType::kBytes, 1}, {"class", ValueType::kBytes, 1}};
}

std::vector<std::string> classes_in(const ShardIndex& index) {
  std::string_view left = index.extra;
  return take_classes(left);
}

std::string image_problem_at(const ByteSource& shard, int64_t offset, int64_t bytes) {
  thread_local std::string buffer;
  buffer.resize(static_cast<size_t>(bytes));
  shard.read(offset, buffer);
  const std::string problem = image_problem(buffer);
  return problem.empty() ? problem : "cannot decode the image: " + problem;
}

ImageDecoder::ImageDecoder(const ByteSource& shard, const ShardIndex& index)
    : ShardDecoder(shard, index), images_(index.extra) {
  classes_ = take_classes(images_);
  if (images_.size() != static_cast<size_t>(index.records) * kEntry)
    throw UserError("the index of images does not fit its {} records", index.records);
}

ImageDecoder::Image ImageDecoder::image(int64_t record) const {
  std::string_view entry = images_.substr(static_cast<size_t>(record) * kEntry, kEntry);
  const auto bytes = static_cast<int64_t>(take(entry));
  return {bytes, take(entry)};
}

void ImageDecoder::decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const {
  for (int64_t record = first; record < first + count; ++record) {
    const Image stored = image(record);
    const auto offset = static_cast<int64_t>(index().offsets[static_cast<size_t>(record)]);
    block.columns[0].as<std::string_view>().push_back(fetch.read(offset, stored.bytes));
    block.columns[1].as<std::string_view>().push_back(classes_.at(stored.class_number));
  }
  block.records += count;
}

std::string ImageDecoder::describe(int64_t record) const {
  return fmt::format("{} at byte {}", bytes().name(), index().offsets[static_cast<size_t>(record)]);
}

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

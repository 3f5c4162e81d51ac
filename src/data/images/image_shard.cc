#include "data/images/image_shard.h"

#include <cstring>

#include "base/error.h"
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

}  // namespace lockstep

// What shards of encoded images have in common, however they are stored: where each image lies, how long it
// is, and its class. Columns: image (the encoded bytes) and class (its name, or a number as text).
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/format/format.h"

namespace lockstep {

// A longer one is not an image that anybody trains on.
inline constexpr int64_t kMostImageBytes = int64_t{1} << 28;

class ImageIndexBuilder {
 public:
  // Images in the order of their offsets.
  void add(int64_t offset, int64_t bytes, std::string_view class_name);
  int64_t records() const { return static_cast<int64_t>(images_.size()); }
  ShardIndex finish(int64_t end) const;

 private:
  struct Image {
    int64_t offset, bytes;
    uint64_t class_number;
  };
  std::vector<Image> images_;
  std::map<std::string, uint64_t, std::less<>> classes_;
};

std::vector<BlockField> image_fields_of(const FormatOptions& options);
// The distinct classes of a shard, from its index. Throws UserError if the index is not one of images.
std::vector<std::string> classes_in(const ShardIndex& index);
// What decoding the image would refuse it for; empty: nothing.
std::string image_problem_at(const ByteSource& shard, int64_t offset, int64_t bytes);

class ImageDecoder : public ShardDecoder {
 public:
  ImageDecoder(const ByteSource& shard, const ShardIndex& index);

  void decode(Fetch& fetch, int64_t first, int64_t count, ColumnBlock& block) const override;
  std::string describe(int64_t record) const override;

 private:
  struct Image {
    int64_t bytes;
    uint64_t class_number;
  };
  Image image(int64_t record) const;

  std::vector<std::string> classes_;
  std::string_view images_;  // in the index
};

// Folders of images, one folder per class: a shard is the folder of one class (bytes/folder_bytes.h), and
// its name is the class. Subfolders belong to the class. Files that are not called .jpg, .jpeg or .png are
// passed over.
std::unique_ptr<Format> make_images_format(const FormatOptions& options);

// The folders of the classes below the named folders, sorted by the bytes of their paths. Throws UserError
// for a folder without any.
std::vector<std::unique_ptr<ByteSource>> open_class_folders(const std::vector<std::string>& folders);

}  // namespace lockstep

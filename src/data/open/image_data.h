// Images in files as a source for classification: images/images_format.h or tar/tar_format.h, then
// transform/model_inputs.h, under a FileSource.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/pixels/pixels.h"
#include "data/reading/file_source.h"

namespace lockstep {

struct ImageDataOptions {
  bool tar = false;
  int64_t size = 0;     // pixels a side
  int64_t classes = 0;  // that the model tells apart
  Augmentation augment = {};
  int64_t resize = 0;    // pixels of the short side before the middle is taken; 0: size
  bool stretch = false;  // the whole image is taken instead of the middle
  Normalisation colors = {};
  uint64_t seed = 0;
  BadRecords bad = BadRecords::kStop;
  double most_bad = 0;
  IndexFolder index_folder = {};
  int threads = 1;  // to index with
  int64_t budget = int64_t{512} << 20;
  IndexProgress progress = {};
};

struct ImageShards {
  std::shared_ptr<const ShardSet> shards;
  // The names of the classes in the order of their labels: sorted by their bytes. Empty: classes are numbers,
  // which are the labels.
  std::vector<std::string> classes;
};

// Throws UserError for more classes than the model has. Without `classes` those that the shards have.
ImageShards open_image_shards(const ImageDataOptions& options, const std::vector<std::string>& files,
                              const std::optional<std::vector<std::string>>& classes = {});
std::shared_ptr<const FileSource> open_image_source(const ImageDataOptions& options,
                                                    const ImageShards& shards);

}  // namespace lockstep

#include "data/open/image_data.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "data/bytes/byte_source.h"
#include "data/bytes/files.h"
#include "data/images/image_shard.h"
#include "data/tar/tar_members.h"
#include "data/transform/model_inputs.h"

namespace lockstep {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::unique_ptr<ByteSource>> open_shards(const ImageDataOptions& options, const Format& format,
                                                     const std::vector<std::string>& files) {
  if (!options.tar) return open_class_folders(files);
  std::vector<std::unique_ptr<ByteSource>> shards;
  for (const std::string& path : expand_files(files, format.suffix()))
    shards.push_back(open_shard(path, options.index_folder));
  return shards;
}

// Folders are always names; the classes of tar shards are numbers where all of them are.
std::vector<std::string> labels_of(const ImageDataOptions& options, const ShardSet& shards) {
  std::set<std::string> names;
  for (size_t i = 0; i < shards.manifest().shards().size(); ++i)
    for (std::string& name : classes_in(shards.index(i))) names.insert(std::move(name));
  const bool numbers = options.tar && std::all_of(names.begin(), names.end(), is_number);
  return numbers ? std::vector<std::string>{} : std::vector<std::string>(names.begin(), names.end());
}

// A class that the model has no answer for is told here, not by the step that meets its first image.
void check_classes(const ImageDataOptions& options, const ImageShards& opened) {
  const std::set<std::string, std::less<>> known(opened.classes.begin(), opened.classes.end());
  for (size_t i = 0; i < opened.shards->manifest().shards().size(); ++i)
    for (const std::string& name : classes_in(opened.shards->index(i))) {
      const std::string& shard = opened.shards->manifest().shards()[i].name;
      if (!known.empty() && !known.contains(name))
        throw UserError("{}: class '{}' is not among the {} of the training data", shard, name.substr(0, 40),
                        known.size());
      if (known.empty() && (!is_number(name) || std::stoll(name) >= options.classes))
        throw UserError("{}: class '{}' is not a number below {}; set model.classes to more, or correct it",
                        shard, name.substr(0, 40), options.classes);
    }
}

}  // namespace

ImageShards open_image_shards(const ImageDataOptions& options, const std::vector<std::string>& files,
                              const std::optional<std::vector<std::string>>& classes) {
  const FormatOptions format_options{{}, {}, options.bad};
  auto format = options.tar ? make_tar_format(format_options) : make_images_format(format_options);
  auto shards = open_shards(options, *format, files);
  ImageShards opened;
  opened.shards = std::make_shared<ShardSet>(std::move(format), std::move(shards),
                                             ShardSetOptions{.index_folder = options.index_folder,
                                                             .threads = options.threads,
                                                             .most_bad = options.most_bad,
                                                             .progress = options.progress});
  warn_of_bad_records(*opened.shards);
  opened.classes = classes ? *classes : labels_of(options, *opened.shards);
  if (static_cast<int64_t>(opened.classes.size()) > options.classes)
    throw UserError(
        "the images have {} classes, from '{}' to '{}', but the model tells {} apart; write "
        "model.classes: {}",
        opened.classes.size(), opened.classes.front(), opened.classes.back(), options.classes,
        opened.classes.size());
  check_classes(options, opened);
  return opened;
}

std::shared_ptr<const FileSource> open_image_source(const ImageDataOptions& options,
                                                    const ImageShards& shards) {
  TransformOptions input{"image_input", {}};
  input.settings["size"] = {std::to_string(options.size)};
  if (shards.classes.empty())
    input.settings["labels"] = {std::to_string(options.classes)};
  else
    input.settings["classes"] = shards.classes;
  const Augmentation& augment = options.augment;
  input.settings["crop"] = {augment.random_crop ? "random" : options.stretch ? "none" : "center"};
  input.settings["flip"] = {augment.flip ? "yes" : "no"};
  const auto set = [&](const char* key, auto... values) {
    input.settings[key] = {fmt::format("{}", values)...};
  };
  set("area", augment.area);
  set("ratio", augment.ratio[0], augment.ratio[1]);
  set("brightness", augment.brightness);
  set("contrast", augment.contrast);
  set("saturation", augment.saturation);
  set("hue", augment.hue);
  set("grayscale", augment.grayscale);
  if (options.resize > 0) set("resize", options.resize);
  const auto& [mean, deviation] = options.colors;
  set("mean", mean[0], mean[1], mean[2]);
  set("deviation", deviation[0], deviation[1], deviation[2]);
  std::vector<Column> columns{{"images", DType::kF32, {options.size, options.size, 3}},
                              {"labels", DType::kI32, {}}};
  std::vector<std::shared_ptr<const Transform>> transforms{make_image_input(input)};
  return std::make_shared<FileSource>(
      shards.shards, std::move(transforms),
      // A record costs far more to decode than to find: none is decoded because its neighbour was wanted.
      FileSourceOptions{std::move(columns), options.budget, options.seed, 1});
}

}  // namespace lockstep

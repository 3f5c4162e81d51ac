#include <charconv>
#include <cmath>
#include <span>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/sha256.h"
#include "data/order/draws.h"
#include "data/order/permutation.h"
#include "data/pixels/decode.h"
#include "data/pixels/pixels.h"
#include "data/transform/model_inputs.h"
#include "data/transform/settings.h"

namespace lockstep {
namespace {

constexpr uint32_t kCropStream = 20, kFlipStream = 21, kColorStream = 22, kGreyStream = 23;
constexpr int kTries = 10;

// In pixels of the whole image.
struct Crop {
  int64_t x = 0, y = 0, width = 0, height = 0;
};

// The square in the middle that covers this share of the short side.
Crop middle_of(ImageExtent full, double share) {
  const int64_t whole = std::min(full.width, full.height);
  const auto part = static_cast<int64_t>(std::floor(static_cast<double>(whole) * share + 0.5));
  const int64_t side = std::clamp<int64_t>(part, 1, whole);
  return {(full.width - side) / 2, (full.height - side) / 2, side, side};
}

// A part with a random share of the area and a random shape; where none fits after a few tries, the middle
// (as is usual since Szegedy et al., 2015).
Crop random_crop(ImageExtent full, const Augmentation& by, Draws draws) {
  const double whole = static_cast<double>(full.width) * static_cast<double>(full.height);
  const double narrow = portable_log(by.ratio[0]), wide = portable_log(by.ratio[1]);
  for (int i = 0; i < kTries; ++i) {
    const double wanted = whole * draws.between(by.area, 1.0);
    const double ratio = portable_exp(draws.between(narrow, wide));
    const auto width = static_cast<int64_t>(std::floor(std::sqrt(wanted * ratio) + 0.5));
    const auto height = static_cast<int64_t>(std::floor(std::sqrt(wanted / ratio) + 0.5));
    const uint32_t at_x = draws.bits(), at_y = draws.bits();
    if (width < 1 || height < 1 || width > full.width || height > full.height) continue;
    const auto below = [](uint32_t bits, int64_t count) {
      return static_cast<int64_t>((bits * static_cast<uint64_t>(count)) >> 32);
    };
    return {below(at_x, full.width - width + 1), below(at_y, full.height - height + 1), width, height};
  }
  return middle_of(full, 1);
}

// The smallest scale in eighths at which the crop still has `size` pixels a side.
int eighths_for(const Crop& crop, int64_t size) {
  int eighths = 1;
  while (eighths < 8 && std::min(crop.width, crop.height) * eighths < size * 8) eighths *= 2;
  return eighths;
}

// What must be decoded for the crop: also what the filter reaches beyond it, and a margin in which colours
// are not yet as in the whole image.
WantedPart part_for(const Crop& crop, ImageExtent full, int64_t size) {
  constexpr int64_t kMargin = 8;
  const int eighths = eighths_for(crop, size);
  const int64_t reach = std::max(crop.width, crop.height) / size + 2;
  const int64_t margin = kMargin * 8 / eighths + reach;
  const int64_t left = std::max<int64_t>(crop.x - margin, 0), top = std::max<int64_t>(crop.y - margin, 0);
  return {eighths, left, top, std::min(crop.x + crop.width + margin, full.width) - left,
          std::min(crop.y + crop.height + margin, full.height) - top};
}

class ImageInput : public Transform {
 public:
  explicit ImageInput(const TransformOptions& options) {
    TransformSettings settings(options);
    size_ = static_cast<int64_t>(settings.number("size"));
    if (size_ < 1 || size_ > 4096) throw UserError("transform image_input: size is {}; use 1 to 4096", size_);
    for (const std::string& name : settings.optional_list("classes"))
      classes_.emplace(name, static_cast<int32_t>(classes_.size()));
    labels_ = settings.whole("labels", 1, 2147483647, static_cast<int64_t>(classes_.size()));
    if (labels_ == 0) throw UserError("transform image_input needs classes or labels, one of the two");
    const std::string crop = settings.choice("crop", {"center", "random", "none"});
    augment_.random_crop = crop == "random";
    stretch_ = crop == "none";
    augment_.flip = settings.yes("flip");
    augment_.area = settings.optional_number("area").value_or(augment_.area);
    if (!(augment_.area > 0 && augment_.area <= 1))
      throw UserError("transform image_input: area is {}; use above 0 to 1", augment_.area);
    if (const std::vector<double> ratio = settings.optional_numbers("ratio"); !ratio.empty()) {
      if (ratio.size() != 2 || !(ratio[0] > 0 && ratio[0] <= ratio[1]))
        throw UserError("transform image_input: ratio takes the least and the greatest width to height");
      augment_.ratio = {ratio[0], ratio[1]};
    }
    augment_.brightness = share(settings, "brightness");
    augment_.contrast = share(settings, "contrast");
    augment_.saturation = share(settings, "saturation");
    augment_.hue = share(settings, "hue");
    augment_.grayscale = share(settings, "grayscale");
    resize_ = settings.whole("resize", size_, 1 << 20, size_);
    three(settings, "mean", colors_.mean);
    three(settings, "deviation", colors_.deviation);
    settings.finish();
  }

  std::string text() const override {
    std::string names;
    for (const auto& [name, label] : classes_) names += fmt::format("{} {}\n", label, name);
    return fmt::format("image_input 3 {} {} {} {} {} {} [{}] {} {} {} {} {} {} [{}] [{}] {}", size_, resize_,
                       labels_, sha256(names), augment_.random_crop, augment_.area,
                       fmt::join(augment_.ratio, " "), augment_.flip, augment_.brightness, augment_.contrast,
                       augment_.saturation, augment_.hue, augment_.grayscale, fmt::join(colors_.mean, " "),
                       fmt::join(colors_.deviation, " "), image_libraries()) +
           (stretch_ ? " stretched" : "");
  }

  bool random() const override { return augment_.random(); }
  std::vector<BlockField> reads() const override {
    return {{"image", ValueType::kBytes, 1}, {"class", ValueType::kBytes, 1}};
  }

  std::vector<BlockField> output(const std::vector<BlockField>& input) const override {
    for (const char* name : {"image", "class"})
      if (input[index_of(input, name)].type != ValueType::kBytes)
        throw UserError("transform image_input: column '{}' does not hold bytes", name);
    std::vector<BlockField> fields{{"images", ValueType::kF32, size_ * size_ * 3},
                                   {"labels", ValueType::kI32, 1}};
    for (const BlockField& field : input)
      if (field.name != "image" && field.name != "class") fields.push_back(field);
    return fields;
  }

  void apply(const BlockPlace& place, ColumnBlock& block) const override {
    const auto each = static_cast<size_t>(size_ * size_ * 3);
    const auto records = static_cast<size_t>(block.records);
    std::vector<float> images(records * each);
    std::vector<int32_t> labels(records);
    const auto& encoded = block.column("image").as<std::string_view>();
    const auto& classes = block.column("class").as<std::string_view>();
    const uint64_t seed = mix64(place.seed + mix64(static_cast<uint64_t>(place.epoch) + 1));
    for (size_t r = 0; r < records; ++r) {
      labels[r] = label_of(classes[r], r);
      make(encoded[r], seed, static_cast<uint64_t>(place.first) + r, r,
           std::span(images).subspan(r * each, each));
    }
    std::vector<BlockColumn> columns;
    columns.push_back({"images", static_cast<int64_t>(each), std::move(images)});
    columns.push_back({"labels", 1, std::move(labels)});
    for (BlockColumn& column : block.columns)
      if (column.name != "image" && column.name != "class") columns.push_back(std::move(column));
    block.columns = std::move(columns);
  }

 private:
  static double share(TransformSettings& settings, std::string_view key) {
    const double value = settings.optional_number(key).value_or(0);
    if (!(value >= 0 && value <= 1))
      throw UserError("transform image_input: {} is {}; use 0 to 1", key, value);
    return value;
  }

  static void three(TransformSettings& settings, std::string_view key, std::array<double, 3>& values) {
    const std::vector<double> given = settings.optional_numbers(key);
    if (given.empty()) return;
    if (given.size() != 3) throw UserError("transform image_input: {} takes three numbers", key);
    std::copy(given.begin(), given.end(), values.begin());
  }

  int32_t label_of(std::string_view name, size_t row) const {
    if (!classes_.empty()) {
      const auto found = classes_.find(name);
      if (found != classes_.end()) return found->second;
      throw BadValue(row, fmt::format("class '{}' is not among the {} of the training data", name, labels_));
    }
    int32_t label = -1;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), label);
    if (failure != std::errc() || end != name.data() + name.size() || label < 0 || label >= labels_)
      throw BadValue(row, fmt::format("class '{}' is not a number below {}", name.substr(0, 40), labels_));
    return label;
  }

  void make(std::string_view bytes, uint64_t seed, uint64_t record, size_t row, std::span<float> out) const {
    thread_local Pixels pixels;
    ImageExtent full;
    Crop crop;
    const auto wanted = [&](ImageExtent extent) {
      crop = crop_of(extent, seed, record);
      return part_for(crop, extent, size_);
    };
    const std::string problem = decode_image(bytes, wanted, full, pixels);
    if (!problem.empty()) throw BadValue(row, "cannot decode the image: " + problem);
    if (crop.width == 0) crop = crop_of(full, seed, record);
    const double x = static_cast<double>(pixels.whole_width) / static_cast<double>(full.width);
    const double y = static_cast<double>(pixels.whole_height) / static_cast<double>(full.height);
    resize_image(pixels,
                 {static_cast<double>(crop.x) * x - static_cast<double>(pixels.left),
                  static_cast<double>(crop.y) * y - static_cast<double>(pixels.top),
                  static_cast<double>(crop.width) * x, static_cast<double>(crop.height) * y},
                 size_, out);
    if (augment_.flip && (Draws(seed, kFlipStream, record).bits() & 1) != 0) mirror(size_, out);
    if (augment_.recolors()) recolor(Draws(seed, kColorStream, record), out);
    if (augment_.grayscale > 0 && Draws(seed, kGreyStream, record).chance(augment_.grayscale))
      remove_colors(out);
    normalise_colors(colors_, out);
  }

  void recolor(Draws draws, std::span<float> out) const {
    const auto factor = [&](double by) { return static_cast<float>(draws.between(1 - by, 1 + by)); };
    ColorFactors factors;
    factors.brightness = factor(augment_.brightness);
    factors.contrast = factor(augment_.contrast);
    factors.saturation = factor(augment_.saturation);
    change_colors(factors, out);
    if (augment_.hue == 0) return;
    const double turn = draws.between(-augment_.hue, augment_.hue);
    // Whole circles do not count, so the cast wraps as it should.
    turn_hue(static_cast<uint32_t>(static_cast<int64_t>(turn * 0x1p32)), out);
  }

  Crop crop_of(ImageExtent full, uint64_t seed, uint64_t record) const {
    if (stretch_) return {0, 0, full.width, full.height};
    if (!augment_.random_crop)
      return middle_of(full, static_cast<double>(size_) / static_cast<double>(resize_));
    return random_crop(full, augment_, Draws(seed, kCropStream, record));
  }

  int64_t size_ = 0, resize_ = 0, labels_ = 0;
  bool stretch_ = false;
  std::map<std::string, int32_t, std::less<>> classes_;
  Augmentation augment_;
  Normalisation colors_;
};

constexpr TransformSetting kSettings[] = {
    {"size", "pixels a side", ""},
    {"classes", "names in the order of their labels", "`labels`"},
    {"labels", "how many classes there are, where they are numbers", "`classes`"},
    {"crop", "`center`, `random`, or `none`: the whole image, stretched", "center"},
    {"area", "least share of the image that a random crop covers", "0.08"},
    {"flip", "`yes` or `no`", "no"},
    {"ratio", "least and greatest width to height of a random crop", "3/4 and 4/3"},
    {"brightness", "varies from 1 - x to 1 + x times", "0"},
    {"contrast", "likewise", "0"},
    {"saturation", "likewise", "0"},
    {"hue", "part of the circle that colours are turned by, at most", "0"},
    {"grayscale", "share of the images that lose their colours", "0"},
    {"resize", "pixels of the short side, of which `size` in the middle are taken", "size"},
    {"mean", "three numbers", "those of ImageNet"},
    {"deviation", "three numbers", "those of ImageNet"},
};

}  // namespace

constinit const TransformEntry kImageInputTransform{
    "image_input", "Encoded images as the inputs of a network; data.images sets it.", "", kSettings,
    make_image_input};

std::unique_ptr<Transform> make_image_input(const TransformOptions& options) {
  return std::make_unique<ImageInput>(options);
}

}  // namespace lockstep

// Images from folders and tar shards as a source: labels, augmentation by record and epoch, faults and
// policies.
#include "data/open/image_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/order/order.h"
#include "data/testing/test_compression.h"
#include "data/testing/test_images.h"
#include "data/transform/model_inputs.h"

namespace lockstep {
namespace {

class ImageFiles : public testing::Test {
 protected:
  void SetUp() override {
    for (int kind = 0; kind < 3; ++kind)
      for (int i = 0; i < 6; ++i) {
        const Pixels image = striped_image(40 + i, 30 + kind, kind, i);
        const std::string name = fmt::format("train/{}/{}", kClasses[kind], i);
        if (i % 2 == 0)
          folder_.write(name + ".jpg", to_jpeg(image));
        else
          folder_.write(name + ".PNG", to_png(image));
      }
    folder_.write("train/b/notes.txt", "not an image");
  }
  ImageDataOptions options(const Augmentation& augment = {}) const {
    ImageDataOptions options;
    options.size = 16;
    options.classes = 3;
    options.augment = augment;
    options.seed = 5;
    return options;
  }
  std::shared_ptr<const FileSource> open(const ImageDataOptions& options) const {
    return open_image_source(options, open_image_shards(options, {folder_.path("train")}));
  }
  std::string error(const ImageDataOptions& options) const {
    try {
      const auto source = open(options);
      Batch batch(source->columns(), 1);
      for (int64_t i = 0; i < source->size(); ++i) source->fill(std::vector{i}, batch);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  static constexpr const char* kClasses[] = {"B", "a", "b"};
  TestFolder folder_;
};

std::vector<float> pixels_of(const Source& source, int64_t record) {
  Batch batch(source.columns(), 1);
  source.fill(std::vector{record}, batch);
  const auto values = batch.values<float>(0);
  return {values.begin(), values.end()};
}

TEST_F(ImageFiles, LabelsAreFoldersByTheirBytes) {
  const auto source = open(options());
  EXPECT_EQ(source->size(), 18);
  Batch batch(source->columns(), 4);
  source->fill(std::vector<int64_t>{0, 6, 17, kNoRecord}, batch);
  const auto labels = batch.values<int32_t>(1);
  EXPECT_EQ(std::vector<int32_t>(labels.begin(), labels.end()),
            (std::vector<int32_t>{0, 1, 2, kIgnoredLabel}));
  EXPECT_EQ(source->describe(7), folder_.path("train/a/1.PNG"));
  ImageDataOptions few = options();
  few.classes = 2;
  EXPECT_NE(error(few).find("3 classes, from 'B' to 'b', but the model tells 2 apart"), std::string::npos);
}

TEST_F(ImageFiles, OtherFilesHaveTheLabelsOfTraining) {
  const ImageShards train = open_image_shards(options(), {folder_.path("train")});
  folder_.write("held/b/x.jpg", to_jpeg(striped_image(20, 20, 2, 0)));
  const auto held =
      open_image_source(options(), open_image_shards(options(), {folder_.path("held")}, train.classes));
  Batch batch(held->columns(), 1);
  held->fill(std::vector<int64_t>{0}, batch);
  EXPECT_EQ(batch.values<int32_t>(1)[0], 2);
  folder_.write("held/c/x.jpg", to_jpeg(striped_image(20, 20, 2, 0)));
  EXPECT_THROW(open_image_shards(options(), {folder_.path("held")}, train.classes), UserError);
}

TEST_F(ImageFiles, WithoutAugmentationNothingIsRandom) {
  const auto source = open(options());
  ImageDataOptions other = options();
  other.seed = 6;
  EXPECT_EQ(pixels_of(*source, 3), pixels_of(*open(other), 3));
  other.augment.flip = true;
  EXPECT_NE(source->fingerprint(), open(other)->fingerprint());
}

TEST(ImageInput, RandomPartsAreAFunctionOfSeedEpochAndRecord) {
  const TransformOptions settings{
      "image_input",
      {{"size", {"8"}}, {"labels", {"10"}}, {"crop", {"random"}}, {"flip", {"yes"}}, {"hue", {"0.4"}}}};
  const auto transform = make_image_input(settings);
  EXPECT_TRUE(transform->random());
  const std::string jpeg = to_jpeg(striped_image(64, 48, 0, 1));
  const auto apply = [&](const BlockPlace& place, size_t records) {
    ColumnBlock block;
    block.reset({{"image", ValueType::kBytes, 1}, {"class", ValueType::kBytes, 1}});
    block.records = static_cast<int64_t>(records);
    for (size_t i = 0; i < records; ++i) {
      block.columns[0].as<std::string_view>().push_back(jpeg);
      block.columns[1].as<std::string_view>().push_back("3");
    }
    transform->apply(place, block);
    check_block(block);
    return block.column("images").as<float>();
  };
  const std::vector<float> four = apply({1, 2, 100}, 4);
  const std::vector<float> third = apply({1, 2, 102}, 1);
  EXPECT_TRUE(std::equal(third.begin(), third.end(), four.begin() + 2 * 192));
  EXPECT_NE(apply({1, 3, 102}, 1), third);
  EXPECT_NE(apply({2, 2, 102}, 1), third);
  EXPECT_NE(apply({1, 2, 103}, 1), third);
}

// One record's pixels, with these settings beside the size.
std::vector<float> input_of(const std::string& jpeg, std::map<std::string, std::vector<std::string>> settings,
                            int64_t record = 0) {
  settings["size"] = {"8"};
  settings["labels"] = {"10"};
  settings["mean"] = {"0", "0", "0"};
  settings["deviation"] = {"1", "1", "1"};
  const auto transform = make_image_input({"image_input", settings});
  ColumnBlock block;
  block.reset({{"image", ValueType::kBytes, 1}, {"class", ValueType::kBytes, 1}});
  block.records = 1;
  block.columns[0].as<std::string_view>().push_back(jpeg);
  block.columns[1].as<std::string_view>().push_back("3");
  transform->apply({1, 2, record}, block);
  return block.column("images").as<float>();
}

TEST(ImageInput, EachColourSettingChangesItsOwnThing) {
  const std::string jpeg = to_jpeg(striped_image(64, 48, 0, 1));
  const std::vector<float> plain = input_of(jpeg, {});
  std::set<std::vector<float>> seen{plain};
  for (const char* key : {"brightness", "contrast", "saturation", "hue", "grayscale"}) {
    const std::vector<float> changed = input_of(jpeg, {{key, {"1"}}}, 7);
    EXPECT_TRUE(seen.insert(changed).second) << key;
    EXPECT_EQ(input_of(jpeg, {{key, {"1"}}}, 7), changed) << key;
    EXPECT_EQ(input_of(jpeg, {{key, {"0"}}}, 7), plain) << key;
    for (const float value : changed) EXPECT_TRUE(value >= -1e-6f && value <= 1 + 1e-6f) << key;
  }
  const std::vector<float> grey = input_of(jpeg, {{"grayscale", {"1"}}});
  for (size_t i = 0; i < grey.size(); i += 3) EXPECT_TRUE(grey[i] == grey[i + 1] && grey[i] == grey[i + 2]);
}

TEST(ImageInput, AShortSideOfMorePixelsLeavesTheBorderOut) {
  // Only the border is bright.
  Pixels image;
  image.resize(64, 64);
  for (int64_t y = 0; y < 64; ++y)
    for (int64_t x = 0; x < 64 * 3; ++x) image.row(y)[x] = y < 8 || y >= 56 || x < 24 || x >= 168 ? 255 : 0;
  const std::string png = to_png(image);
  const std::vector<float> all = input_of(png, {}), middle = input_of(png, {{"resize", {"16"}}});
  EXPECT_GT(all[0], 0.9f);
  EXPECT_EQ(*std::max_element(middle.begin(), middle.end()), 0.0f);
  EXPECT_THROW(input_of(png, {{"resize", {"7"}}}), UserError);
}

TEST(ImageInput, TheShapeOfARandomCropIsSet) {
  // Columns of one colour each: a crop of one shape is a matter of where, not of how wide.
  const std::string jpeg = to_jpeg(striped_image(64, 48, 0, 1));
  const std::map<std::string, std::vector<std::string>> square{
      {"crop", {"random"}}, {"area", {"1"}}, {"ratio", {"1.3333333333333333", "1.3333333333333333"}}};
  EXPECT_EQ(input_of(jpeg, square, 1), input_of(jpeg, square, 2));  // the whole image, always
  EXPECT_THROW(input_of(jpeg, {{"ratio", {"2", "1"}}}), UserError);
}

TEST(ImageInput, RefusesSettingsAndClassesThatItDoesNotKnow) {
  EXPECT_THROW(make_image_input({"image_input", {{"size", {"8"}}}}), UserError);
  EXPECT_THROW(make_image_input({"image_input", {{"size", {"8"}}, {"labels", {"2"}}, {"crop", {"left"}}}}),
               UserError);
  EXPECT_THROW(make_image_input({"image_input", {{"size", {"8"}}, {"labels", {"2"}}, {"mean", {"1", "2"}}}}),
               UserError);
  const auto transform = make_image_input({"image_input", {{"size", {"8"}}, {"labels", {"2"}}}});
  for (const char* name : {"2", "-1", "x", ""}) {
    ColumnBlock block;
    block.reset({{"image", ValueType::kBytes, 1}, {"class", ValueType::kBytes, 1}});
    block.records = 1;
    block.columns[0].as<std::string_view>().push_back("");
    block.columns[1].as<std::string_view>().push_back(name);
    EXPECT_THROW(transform->apply({}, block), BadValue) << name;
  }
}

TEST_F(ImageFiles, ABrokenImageStopsOrIsLeftOut) {
  const std::string jpeg = to_jpeg(striped_image(40, 30, 0, 0));
  folder_.write("train/a/2.jpg", jpeg.substr(0, jpeg.size() / 2));
  EXPECT_NE(error(options()).find(folder_.path("train/a/2.jpg") + ": cannot decode the image: Premature end"),
            std::string::npos)
      << error(options());
  folder_.write("train/a/3.PNG", "");
  EXPECT_NE(error(options()).find("train/a/3.PNG: the file is empty"), std::string::npos);
  ImageDataOptions skip = options();
  skip.bad = BadRecords::kSkip;
  EXPECT_NE(error(skip).find("2 of 18 records cannot be used"), std::string::npos) << error(skip);
  skip.most_bad = 0.2;
  EXPECT_EQ(error(skip), "");
  const auto source = open(skip);
  EXPECT_EQ(source->size(), 16);
  EXPECT_EQ(source->describe(8), folder_.path("train/a/4.jpg"));
}

TEST_F(ImageFiles, AFileThatChangesWhileARunReadsItIsAnError) {
  const auto source = open(options());
  const std::string before = source->fingerprint();
  folder_.write("train/a/2.jpg", to_jpeg(striped_image(40, 30, 2, 9)));
  try {
    pixels_of(*source, 8);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("train/a/2.jpg at byte 0: the file has changed"),
              std::string::npos);
  }
  EXPECT_NE(open(options())->fingerprint(), before);
  std::filesystem::remove(folder_.path("train/a/4.jpg"));
  EXPECT_THROW(pixels_of(*source, 10), UserError);
  EXPECT_EQ(open(options())->size(), 17);
}

TEST_F(ImageFiles, TarShardsHoldTheSameImages) {
  std::string archive;
  for (int kind = 0; kind < 3; ++kind)
    for (int i = 0; i < 6; ++i) {
      const std::string ending = i % 2 == 0 ? ".jpg" : ".PNG";
      const std::string name = fmt::format("{}{}", kClasses[kind], i);
      archive += tar_member(name + ending,
                            read_file(folder_.path(fmt::format("train/{}/{}{}", kClasses[kind], i, ending))));
      archive += tar_member(name + ".cls", std::to_string(kind));
    }
  folder_.write("shards/s-0.tar", archive + tar_end());
  ImageDataOptions tar = options();
  tar.tar = true;
  const ImageShards shards = open_image_shards(tar, {folder_.path("shards")});
  EXPECT_TRUE(shards.classes.empty());
  const auto source = open_image_source(tar, shards);
  const auto folders = open(options());
  ASSERT_EQ(source->size(), 18);
  for (int64_t i = 0; i < 18; ++i) EXPECT_EQ(pixels_of(*source, i), pixels_of(*folders, i));
  folder_.write("packed/s-0.tar.gz", gzipped(archive + tar_end()));
  folder_.write("frames/s-0.tar.zst", zstd_frame(archive + tar_end()));
  for (const std::string folder : {"packed", "frames"}) {
    const auto packed = open_image_source(tar, open_image_shards(tar, {folder_.path(folder)}));
    ASSERT_EQ(packed->size(), 18);
    for (int64_t i = 0; i < 18; ++i) EXPECT_EQ(pixels_of(*packed, i), pixels_of(*folders, i)) << folder;
  }
  tar.classes = 2;
  Batch batch(source->columns(), 1);
  EXPECT_THROW(open_image_source(tar, shards)->fill(std::vector<int64_t>{17}, batch), UserError);
  try {
    open_image_shards(tar, {folder_.path("shards")});
    FAIL() << "a class beyond the model's is found before any image is read";
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              folder_.path("shards/s-0.tar") +
                  ": class '2' is not a number below 2; set model.classes to more, "
                  "or correct it");
  }
}

TEST_F(ImageFiles, FoldersWithoutClassesAreRefused) {
  EXPECT_THROW(open_image_shards(options(), {folder_.path("train/a")}), UserError);
  std::filesystem::create_directories(folder_.path("train/empty"));
  EXPECT_THROW(open_image_shards(options(), {folder_.path("train")}), UserError);
}

}  // namespace
}  // namespace lockstep

// Decoding, scaling and colours of images: what comes out, that it is the same again, and what damage is
// called.
#include "data/pixels/pixels.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cmath>

#include "base/sha256.h"
#include "data/pixels/decode.h"
#include "data/testing/test_images.h"

namespace lockstep {
namespace {

struct Decoded {
  std::string problem;
  ImageExtent full;
  Pixels pixels;
};

Decoded decode(const std::string& bytes, int eighths = 8) {
  Decoded decoded;
  decoded.problem = decode_image(
      bytes, [&](ImageExtent) { return WantedPart{eighths}; }, decoded.full, decoded.pixels);
  return decoded;
}

TEST(DecodeImage, PngIsExact) {
  const Pixels image = striped_image(37, 23, 1, 4);
  const Decoded decoded = decode(to_png(image), 1);
  EXPECT_EQ(decoded.problem, "");
  EXPECT_EQ(decoded.pixels.rgb, image.rgb);
  EXPECT_EQ(decoded.full.width, 37);
}

TEST(DecodeImage, EveryKindOfPngBecomesColours) {
  const std::array<uint8_t, 4> grey{0, 85, 170, 255};
  EXPECT_EQ(decode(to_png(2, 2, PNG_FORMAT_GRAY, grey.data())).pixels.rgb,
            (std::vector<uint8_t>{0, 0, 0, 85, 85, 85, 170, 170, 170, 255, 255, 255}));
  // Transparency is dropped, not blended.
  const std::array<uint8_t, 8> alpha{10, 20, 30, 0, 40, 50, 60, 255};
  EXPECT_EQ(decode(to_png(2, 1, PNG_FORMAT_RGBA, alpha.data())).pixels.rgb,
            (std::vector<uint8_t>{10, 20, 30, 40, 50, 60}));
}

TEST(DecodeImage, JpegIsCloseAtAnyScale) {
  const Pixels image = striped_image(160, 96, 0, 2);
  for (const bool progressive : {false, true})
    for (const int eighths : {1, 2, 4, 8}) {
      const Decoded decoded = decode(to_jpeg(image, 95, progressive), eighths);
      ASSERT_EQ(decoded.problem, "");
      EXPECT_EQ(decoded.full.width, 160);
      EXPECT_EQ(decoded.pixels.width, 160 * eighths / 8);
      EXPECT_EQ(decoded.pixels.height, 96 * eighths / 8);
      if (eighths < 8) continue;
      double error = 0;
      for (size_t i = 0; i < image.rgb.size(); ++i)
        error += std::abs(static_cast<double>(decoded.pixels.rgb[i]) - image.rgb[i]);
      EXPECT_LT(error / static_cast<double>(image.rgb.size()), 6.0);
    }
}

TEST(DecodeImage, APartOfAJpegIsThatOfTheWhole) {
  const std::string jpeg = to_jpeg(striped_image(200, 150, 0, 2));
  for (const int eighths : {1, 2, 4, 8}) {
    const Pixels whole = decode(jpeg, eighths).pixels;
    ImageExtent full;
    Pixels part;
    const WantedPart wanted{eighths, 61, 43, 80, 70};
    const auto choose = [&](ImageExtent) { return wanted; };
    ASSERT_EQ(decode_image(jpeg, choose, full, part), "");
    EXPECT_EQ(part.whole_width, whole.width);
    EXPECT_EQ(part.whole_height, whole.height);
    EXPECT_LE(part.left * 8, 61 * eighths);
    EXPECT_GE((part.left + part.width) * 8, 141 * eighths);
    EXPECT_GE((part.top + part.height) * 8, 113 * eighths);
    // Colours are interpolated from fewer neighbours at the borders.
    constexpr int64_t kBorder = 2;
    for (int64_t y = kBorder; y < part.height - kBorder; ++y)
      for (int64_t x = kBorder * 3; x < (part.width - kBorder) * 3; ++x)
        ASSERT_EQ(part.row(y)[x], whole.row(part.top + y)[part.left * 3 + x])
            << eighths << " " << x << " " << y;
  }
  // Damage below the part is found too.
  ImageExtent full;
  Pixels part;
  const auto top = [](ImageExtent) { return WantedPart{8, 0, 0, 64, 16}; };
  EXPECT_NE(decode_image(std::string_view(jpeg).substr(0, jpeg.size() - 200), top, full, part), "");
}

TEST(DecodeImage, TheLibrarysBitsAreThoseThatWereSeenFirst) {
  // A constant of libjpeg-turbo's exact transform: another one belongs to another identity.
  if (jpeg_library() != "libjpeg-turbo 2.1.5") GTEST_SKIP() << "the bits are those of 2.1.5";
  const Decoded decoded = decode(to_jpeg(striped_image(64, 48, 0, 2)), 4);
  const std::string bytes(decoded.pixels.rgb.begin(), decoded.pixels.rgb.end());
  EXPECT_EQ(sha256(bytes).substr(0, 16), "20fbcd56868d063a");
}

TEST(DecodeImage, DamageIsAnError) {
  const std::string jpeg = to_jpeg(striped_image(64, 64, 0, 1)), png = to_png(striped_image(64, 64, 0, 1));
  for (const std::string& whole : {jpeg, png})
    for (size_t cut = 0; cut + 2 < whole.size(); cut += 1 + whole.size() / 50) {
      EXPECT_NE(decode(whole.substr(0, cut)).problem, "") << cut << " of " << whole.size();
      EXPECT_EQ(image_problem(whole.substr(0, cut)).empty(), decode(whole.substr(0, cut)).problem.empty());
    }
  EXPECT_NE(decode(jpeg.substr(0, jpeg.size() / 2)).problem.find("Premature end"), std::string::npos);
  std::string broken = png;
  broken[broken.size() / 2] ^= 1;
  EXPECT_NE(decode(broken).problem, "");
  EXPECT_EQ(decode("GIF89a").problem, "neither JPEG nor PNG");
  EXPECT_EQ(image_problem(jpeg), "");
  EXPECT_EQ(image_problem(png), "");
}

TEST(DecodeImage, WhatCannotBeAsLargeAsItSaysTakesNoMemory) {
  std::string jpeg = to_jpeg(striped_image(16, 16, 0, 0));
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  for (const size_t at : {5, 7}) jpeg[frame + at] = '\x20';  // height and width become 8208
  const Decoded large = decode(jpeg);
  EXPECT_EQ(large.problem, kTooLittleData);
  EXPECT_TRUE(large.pixels.rgb.empty());

  const Pixels image = striped_image(16, 16, 0, 0);
  std::string png = to_png(16, 16, PNG_FORMAT_RGB, image.rgb.data());
  for (const size_t at : {18, 22}) png[at] = '\x20';
  const uint32_t crc = __builtin_bswap32(
      static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(png.data()) + 12, 17)));  // of the header
  png.replace(29, 4, reinterpret_cast<const char*>(&crc), 4);
  EXPECT_EQ(decode(png).problem, kTooLittleData);
}

TEST(ResizeImage, KeepsAnImageOfTheRightSize) {
  const Pixels image = striped_image(16, 16, 0, 3);
  std::vector<float> out(image.rgb.size());
  resize_image(image, {0, 0, 16, 16}, 16, out);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], static_cast<float>(image.rgb[i]));
}

TEST(ResizeImage, AveragesWhereItShrinks) {
  Pixels image;
  image.resize(8, 8);
  for (int64_t y = 0; y < 8; ++y)
    for (int64_t x = 0; x < 24; ++x) image.row(y)[x] = (x / 3 + y) % 2 == 0 ? 200 : 0;
  std::vector<float> out(3);
  resize_image(image, {0, 0, 8, 8}, 1, out);
  for (const float value : out) EXPECT_NEAR(value, 100, 1e-3);
  // A part of it: one column of full pixels.
  resize_image(image, {2, 2, 1, 1}, 1, out);
  EXPECT_EQ(out[0], 200);
}

TEST(ResizeImage, InterpolatesWhereItGrows) {
  Pixels image;
  image.resize(2, 1);
  image.rgb = {0, 0, 0, 100, 100, 100};
  std::vector<float> out(4 * 4 * 3);
  resize_image(image, {0, 0, 2, 1}, 4, out);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[3], 25);
  EXPECT_EQ(out[6], 75);
  EXPECT_EQ(out[9], 100);
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 12, out.begin() + 36));
}

TEST(Colors, AreMirroredChangedAndNormalised) {
  std::vector<float> rgb{0, 1, 2, 10, 20, 30, 100, 100, 100, 255, 255, 255};
  mirror(2, rgb);
  EXPECT_EQ(rgb, (std::vector<float>{10, 20, 30, 0, 1, 2, 255, 255, 255, 100, 100, 100}));
  std::vector<float> same = rgb;
  change_colors({1, 1, 1}, same);
  for (size_t i = 0; i < rgb.size(); ++i) EXPECT_NEAR(same[i], rgb[i], 1e-4);
  std::vector<float> grey{10, 20, 30};
  change_colors({2, 1, 0}, grey);
  EXPECT_NEAR(grey[0], 0.299 * 20 + 0.587 * 40 + 0.114 * 60, 1e-4);
  EXPECT_EQ(grey[0], grey[2]);
  std::vector<float> bright{200, 100, 0};
  change_colors({2, 1, 1}, bright);
  EXPECT_EQ(bright[0], 255);
  std::vector<float> colors{255, 0, 127.5f};
  normalise_colors({{0.5, 0.5, 0.5}, {0.5, 0.25, 1}}, colors);
  EXPECT_NEAR(colors[0], 1, 1e-6);
  EXPECT_NEAR(colors[1], -2, 1e-6);
  EXPECT_NEAR(colors[2], 0, 1e-6);
}

}  // namespace
}  // namespace lockstep

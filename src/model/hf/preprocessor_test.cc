#include "model/hf/preprocessor.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

using Colors = std::array<double, 3>;

std::string refusal(const std::string& text) {
  try {
    parse_preprocessor(text, "p.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(HfPreprocessor, SquaresAreStretchedTo) {
  const HfPreprocessor vit = parse_preprocessor(
      R"({"do_normalize": true, "do_resize": true, "image_mean": [0.5, 0.25, 0.5], "image_std": [0.5, 0.5, 1],
          "resample": 2, "size": {"height": 384, "width": 384}, "image_processor_type": "ViTImageProcessor"})",
      "p.json");
  EXPECT_EQ(vit.size, 384);
  EXPECT_TRUE(vit.stretched);
  EXPECT_EQ(vit.mean, (Colors{0.5, 0.25, 0.5}));
  EXPECT_EQ(vit.deviation, (Colors{0.5, 0.5, 1}));
  EXPECT_EQ(parse_preprocessor(R"({"size": 224})", "p.json").size, 224);
  EXPECT_EQ(parse_preprocessor("{}", "p.json").mean, (Colors{0.5, 0.5, 0.5}));
}

TEST(HfPreprocessor, TheMiddleIsTakenOfAShortSide) {
  const HfPreprocessor found = parse_preprocessor(
      R"({"size": {"shortest_edge": 256}, "do_center_crop": true, "crop_size": {"height": 224, "width": 224},
          "do_normalize": false})",
      "p.json");
  EXPECT_EQ(found.size, 224);
  EXPECT_EQ(found.short_side, 256);
  EXPECT_FALSE(found.stretched);
  EXPECT_EQ(found.deviation, (Colors{1, 1, 1}));
}

TEST(HfPreprocessor, WhatIsNotDoneIsRefused) {
  EXPECT_EQ(refusal("[]"), "p.json is not a JSON object");
  EXPECT_EQ(refusal("{"), "p.json is not a JSON object");
  EXPECT_NE(refusal("{\"size\": " + std::string(100000, '[') + std::string(100000, ']') + "}"), "accepted");
  EXPECT_EQ(refusal(R"({"size": {"height": 224, "width": 200}})"),
            "p.json: size is {\"height\":224,\"width\":200}: only squares are implemented");
  EXPECT_EQ(refusal(R"({"rescale_factor": 0.5})"),
            "p.json: rescale_factor is 0.5: only 1/255 is implemented");
  EXPECT_EQ(refusal(R"({"rescale_factor": 0.00392156862745098})"), "accepted");
  for (const char* text : {R"({"do_rescale": false})", R"({"do_resize": false})", R"({"size": "large"})",
                           R"({"size": -1})", R"({"size": 1e9})", R"({"image_mean": [1, 2]})",
                           R"({"image_std": [0, 1, 1]})", R"({"image_mean": ["a", 1, 1]})",
                           R"({"do_center_crop": true, "size": {"shortest_edge": 100}, "crop_size": 224})",
                           R"({"do_center_crop": 1})"})
    EXPECT_NE(refusal(text), "accepted") << text;
}

}  // namespace
}  // namespace lockstep

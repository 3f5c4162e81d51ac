// open_data: both parts of every format, with columns that agree and records that do not overlap.
#include "data/open.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

using Format = DataOptions::Format;

DataOptions generated(Format format) {
  DataOptions options;
  options.format = format;
  options.train.samples = 900;
  options.eval.samples = 100;
  options.seq = 16;
  options.vocab = 40;
  options.classes = 3;
  options.image = 8;
  return options;
}

TEST(OpenData, GeneratedFormatsHaveBothParts) {
  for (const Format format :
       {Format::kFraud, Format::kPatternTokens, Format::kPatternText, Format::kPatternImages}) {
    const Data data = open_data(generated(format));
    EXPECT_EQ(data.train->size(), 900);
    ASSERT_NE(data.eval, nullptr);
    EXPECT_EQ(data.eval->size(), 100);
    EXPECT_NE(data.train->fingerprint(), data.eval->fingerprint());
    ASSERT_EQ(data.train->columns().size(), data.eval->columns().size());
    for (size_t i = 0; i < data.train->columns().size(); ++i)
      EXPECT_EQ(data.train->columns()[i].shape, data.eval->columns()[i].shape);
  }
}

TEST(OpenData, HoldsOutTheLastRecords) {
  for (const Format format :
       {Format::kFraud, Format::kPatternTokens, Format::kPatternText, Format::kPatternImages}) {
    DataOptions options = generated(format);
    options.eval.samples = 0;
    options.hold_out = 0.1;
    const Data data = open_data(options);
    EXPECT_EQ(data.train->size(), 810);
    EXPECT_EQ(data.eval->size(), 90);
  }
}

TEST(OpenData, WithoutEvalThereIsNone) {
  DataOptions options = generated(Format::kPatternText);
  options.eval.samples = 0;
  EXPECT_EQ(open_data(options).eval, nullptr);
  options.format = Format::kFraud;
  EXPECT_THROW(open_data(options), UserError);
}

TEST(OpenData, HeldOutRowsOfATableStayOutOfTheFit) {
  const TestFolder folder;
  folder.write("t.csv", "x,y\n1,0\n3,1\n1000,0\n");
  DataOptions options;
  options.train.files = {folder.path("t.csv")};
  options.csv.label = "y";
  options.hold_out = 0.34;
  const Data data = open_data(options);
  EXPECT_EQ(data.train->size(), 2);
  EXPECT_EQ(data.eval->size(), 1);
  EXPECT_NE(data.encoding.find("mean=2 deviation=1"), std::string::npos) << data.encoding;
}

TEST(OpenData, TextIsSplitByWindows) {
  const TestFolder folder;
  folder.write("t.txt", std::string(161, 'a'));
  DataOptions options;
  options.format = Format::kText;
  options.train.files = {folder.path()};
  options.seq = 16;
  options.hold_out = 0.2;
  const Data data = open_data(options);
  EXPECT_EQ(data.train->size(), 8);
  EXPECT_EQ(data.eval->size(), 2);
  options.eval.files = {folder.path("t.txt")};
  EXPECT_EQ(open_data(options).train->size(), 10);
}

}  // namespace
}  // namespace lockstep

// TFRecord files that TensorFlow wrote (golden/tfrecord/make_tfrecord.py), plain and with its GZIP
// compression: every value is the one that was written.
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "data/shards/formats.h"
#include "data/testing/test_blocks.h"

namespace lockstep {
namespace {

constexpr int64_t kRecords = 300;
const std::vector<BlockField> kColumns{{"n", ValueType::kI64, 1},
                                       {"x", ValueType::kF32, 1},
                                       {"word", ValueType::kBytes, 1},
                                       {"pair", ValueType::kF32, 2},
                                       {"list", ValueType::kI64, kVarying}};

// Record r of make_tfrecord.py, as test_blocks.h prints it.
std::string record(int64_t r) {
  std::string text = fmt::format("{}; ", r * r * 1000003 * (r % 2 != 0 ? 1 : -1));
  text += r % 7 == 3 ? "-0; " : fmt::format("{}; ", static_cast<float>(r) / 8);
  text += r % 11 == 5 ? "-; " : fmt::format("k{}é; ", r * 31 % 17);
  text += fmt::format("{};{}; ", static_cast<float>(r) / 4, static_cast<float>(-r) / 2);
  for (int64_t i = 0; i < r % 4; ++i) text += fmt::format("{};", r - i);
  return text + " \n";
}

// The index is kept apart from the golden files.
ShardSet golden(const std::string& name, const TestFolder& folder, const FormatOptions& options) {
  return {make_format("tfrecord", options),
          std::vector<std::string>{LOCKSTEP_GOLDEN "/tfrecord/" + name},
          {.index_folder = folder.path()}};
}

TEST(GoldenTfrecord, IsReadAsTensorflowWroteIt) {
  for (const std::string name : {"plain.tfrecord", "gzip.tfrecord.gz"}) {
    const TestFolder folder;
    const ShardSet set = golden(name, folder, {kColumns});
    ASSERT_EQ(set.manifest().records(), kRecords) << name;
    for (int64_t r = 0; r < kRecords; ++r) EXPECT_EQ(printed(set, r, 1), record(r)) << name << " " << r;
  }
}

TEST(GoldenTfrecord, FindsTheFeaturesThatAreThere) {
  const TestFolder folder;
  const ShardSet set = golden("plain.tfrecord", folder, {});
  std::vector<BlockField> expected = kColumns;
  expected.push_back({"other", ValueType::kBytes, 1});
  for (const BlockField& field : expected)
    EXPECT_NE(std::find(set.fields().begin(), set.fields().end(), field), set.fields().end()) << field.name;
  EXPECT_EQ(set.fields().size(), expected.size());
}

}  // namespace
}  // namespace lockstep

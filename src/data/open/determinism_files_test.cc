// The order never changes (determinism_test.cc), for what is no table: corpora of tokens in their three
// layouts, text, images in folders and in tar shards. The long tests have more rows than the small memory
// holds.
#include <gtest/gtest.h>

#include <random>

#include "base/test_folder.h"
#include "data/open/corpus.h"
#include "data/open/image_data.h"
#include "data/testing/test_compression.h"
#include "data/testing/test_corpora.h"
#include "data/testing/test_epochs.h"
#include "data/testing/test_images.h"
#include "data/tokens/tokens_format.h"

namespace lockstep {
namespace {

constexpr int64_t kVocab = 50000;
constexpr int kClasses = 3;

class Files : public EpochTest {
 protected:
  // Of tokens and text: records of `seq` tokens; of images: images of that many pixels a side.
  Files(int64_t records, int64_t seq, int64_t images, int64_t pixels)
      : records_(records), seq_(seq), images_(images), pixels_(pixels) {}

  void SetUp() override {
    const std::string& format = GetParam();
    if (format == "text") return write_text();
    if (format == "images" || format == "tar") return write_images();
    const Documents documents[] = {documents_of(records_ / 3), documents_of(records_ - records_ / 3)};
    for (int shard = 0; shard < 2; ++shard) {
      const std::string name = fmt::format("data/{}", shard);
      const Documents& own = documents[shard];
      if (format == "megatron") {
        folder_.write(name + ".idx", megatron_index(own, 8, 2));
        folder_.write(name + ".bin", token_bytes<uint16_t>(own));
      } else if (format == "llm_c") {
        folder_.write(name + ".bin", llm_c_shard(joined(own), shard == 1));
      } else {
        folder_.write(name + ".tokens", token_file(own));
      }
    }
  }

  std::shared_ptr<const Source> open(int64_t memory) const override {
    const int64_t budget = memory / 4 * 3;
    const std::vector<std::string> files = {folder_.path("data")};
    const std::string& format = GetParam();
    if (format == "text") return open_text_files({.seq = seq_, .budget = budget}, files);
    if (format == "images" || format == "tar") {
      ImageDataOptions options;
      options.tar = format == "tar";
      options.size = pixels_;
      options.classes = kClasses;
      options.augment = {.random_crop = true, .flip = true};
      options.seed = 5;
      options.budget = budget;
      return open_image_source(options, open_image_shards(options, files));
    }
    CorpusOptions options{.seq = seq_, .vocab = kVocab, .budget = budget};
    options.best_fit = options.separate = format == "own";
    return open_corpus(options, files);
  }

 private:
  // As many tokens as fill so many rows, in documents of up to two rows.
  Documents documents_of(int64_t rows) {
    Documents documents;
    for (int64_t left = rows * seq_ + 1; left > 0;) {
      const int64_t length = std::min<int64_t>(left, 1 + static_cast<int64_t>(draw_() % (2 * seq_)));
      documents.emplace_back(static_cast<size_t>(length));
      for (int32_t& token : documents.back()) token = static_cast<int32_t>(draw_() % kVocab);
      left -= length;
    }
    return documents;
  }
  static std::vector<int32_t> joined(const Documents& documents) {
    std::vector<int32_t> tokens;
    for (const auto& document : documents) tokens.insert(tokens.end(), document.begin(), document.end());
    return tokens;
  }

  // Files whose edges are not those of records, one of them compressed.
  void write_text() {
    std::string text(static_cast<size_t>(records_ * seq_ + 1), '\0');
    for (char& byte : text) byte = static_cast<char>(' ' + draw_() % 90);
    const size_t third = text.size() / 3 + 7;
    folder_.write("data/a.txt", text.substr(0, third));
    folder_.write("data/b.txt.gz", gzipped(text.substr(third, third)));
    folder_.write("data/c.txt", text.substr(2 * third));
  }

  void write_images() {
    std::string shards[2];
    for (int64_t i = 0; i < images_; ++i) {
      Pixels image;
      image.resize(pixels_ + static_cast<int64_t>(draw_() % 9), pixels_ + static_cast<int64_t>(draw_() % 9));
      for (uint8_t& value : image.rgb) value = static_cast<uint8_t>(draw_());
      const std::string bytes = i % 5 == 0 ? to_png(image) : to_jpeg(image, 60);
      const char* const kind = i % 5 == 0 ? "png" : "jpg";
      const auto label = draw_() % kClasses;
      if (GetParam() == "images") {
        folder_.write(fmt::format("data/class{}/{:05}.{}", label, i, kind), bytes);
      } else {
        std::string& shard = shards[i * 3 < images_ ? 0 : 1];
        shard += tar_member(fmt::format("{:05}.{}", i, kind), bytes);
        shard += tar_member(fmt::format("{:05}.cls", i), std::to_string(label));
      }
    }
    if (GetParam() == "images") return;
    for (int shard = 0; shard < 2; ++shard)
      folder_.write(fmt::format("data/{}.tar", shard), shards[shard] + tar_end());
  }

  int64_t records_, seq_, images_, pixels_;
  std::minstd_rand draw_{17};
  TestFolder folder_;
};

class DeterminismOfFiles : public Files {
 protected:
  DeterminismOfFiles() : Files(1500, 32, 150, 8) {}
};
class DeterminismOfFilesLong : public Files {
 protected:
  DeterminismOfFilesLong() : Files(9000, 1024, 1500, 32) {}
};

TEST_P(DeterminismOfFiles, AnEpochIsTheSameHoweverItIsRead) { expect_same_in_a_sample(); }
TEST_P(DeterminismOfFilesLong, AnEpochIsTheSameHoweverItIsRead) { expect_same_in_all_ways(); }
TEST_P(DeterminismOfFilesLong, AnEpochIsResumedAnywhereOnOtherRanksWithOtherBatches) {
  expect_same_when_resumed();
}

const auto kFormats = testing::Values("megatron", "llm_c", "own", "text", "images", "tar");
INSTANTIATE_TEST_SUITE_P(Formats, DeterminismOfFiles, kFormats, kFormatName);
INSTANTIATE_TEST_SUITE_P(Formats, DeterminismOfFilesLong, kFormats, kFormatName);

}  // namespace
}  // namespace lockstep

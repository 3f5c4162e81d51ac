// Runs on corpora of tokens and on images, as files that the test writes: the same bits for one and for three
// workers, and after a restart.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/testing/test_corpora.h"
#include "data/testing/test_images.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

constexpr const char* kTokensJob = R"(
name: tokens
model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 64, seq: 16}
data: {train: {format: tokens, files: unset}, hold_out: 0.1, seed: 3}
train:
  steps: 12
  global_batch: 16
  microbatch: 4
  lr: {base: 1e-2}
  eval: {every: 6}
strategy: {leaves: 4, threads: 1}
checkpoint: {every: 6, keep: 2}
)";

constexpr const char* kImagesJob = R"(
name: images
model: {family: resnet, width: 4, image: 32, classes: 3}
data:
  train: {format: images, files: unset}
  images: {crop: random, area: 0.5, jitter: 0.2}
  hold_out: 0.2
  seed: 3
train:
  steps: 8
  global_batch: 8
  microbatch: 2
  optimizer: {name: sgd}
  lr: {base: 1e-2}
  eval: {every: 4, metric: accuracy}
strategy: {leaves: 4, threads: 1}
checkpoint: {every: 4, keep: 2}
)";

Documents counting_documents() {
  Documents documents;
  for (int d = 0; d < 60; ++d) {
    documents.emplace_back();
    for (int i = 0; i < 5 + d * 37 % 60; ++i) documents.back().push_back((d + i * 3) % 64);
  }
  return documents;
}

void write_corpus(const TrainCase& job) {
  job.folder().write("corpus/c.idx", megatron_index(counting_documents(), 8, 2));
  job.folder().write("corpus/c.bin", token_bytes<uint16_t>(counting_documents()));
}

std::string image_name(int kind, int i) { return fmt::format("{}/{}", "abc"[kind], i); }

std::string image_bytes(int kind, int i) {
  const Pixels image = striped_image(48 + i, 40, kind, i);
  return i % 2 == 0 ? to_jpeg(image) : to_png(image);
}

void write_images(const TrainCase& job) {
  for (int kind = 0; kind < 3; ++kind)
    for (int i = 0; i < 8; ++i)
      job.folder().write("images/" + image_name(kind, i) + (i % 2 == 0 ? ".jpg" : ".png"),
                         image_bytes(kind, i));
}

void write_shards(const TrainCase& job) {
  std::string archive;
  for (int i = 0; i < 8; ++i)
    for (int kind = 0; kind < 3; ++kind) {
      archive += tar_member(image_name(kind, i) + (i % 2 == 0 ? ".jpg" : ".png"), image_bytes(kind, i));
      archive += tar_member(image_name(kind, i) + ".cls", std::to_string(kind));
    }
  job.folder().write("shards/s-0.tar", archive + tar_end());
}

// Trains with one and with three workers, and once more in two parts.
RunSummary expect_same_bits(const TrainCase& job, const std::string& name, Settings settings, int64_t steps) {
  const RunSummary one = job.trained(name + "-one", settings);
  Settings three = settings;
  three.emplace_back("strategy.workers=3");
  const RunSummary shared = job.trained(name + "-three", three);
  EXPECT_EQ(shared.weights_sha256, one.weights_sha256) << name;
  EXPECT_EQ(shared.identity_sha256, one.identity_sha256) << name;
  expect_same_steps(job.metrics(name + "-three"), job.metrics(name + "-one"));
  expect_same_evaluations(job.metrics(name + "-three"), job.metrics(name + "-one"));
  settings.push_back(fmt::format("train.steps={}", steps / 2));
  job.trained(name + "-parts", settings);
  settings.back() = fmt::format("train.steps={}", steps);
  settings.emplace_back("strategy.workers=2");
  EXPECT_EQ(job.trained(name + "-parts", settings).weights_sha256, one.weights_sha256) << name;
  return one;
}

TEST(RunOnCorpora, TokensTrainTheSameOnOneAndThreeWorkers) {
  const TrainCase job(kTokensJob);
  write_corpus(job);
  const std::string files = "data.train.files=" + job.folder().path("corpus");
  const RunSummary split = expect_same_bits(job, "split", {files}, 12);
  const RunSummary packed =
      expect_same_bits(job, "packed", {files, "data.pack=best_fit", "data.documents=separate"}, 12);
  EXPECT_NE(split.weights_sha256, packed.weights_sha256);
  EXPECT_NE(split.identity_sha256, packed.identity_sha256);
  EXPECT_LT(job.metrics("split-one").steps.back().loss, job.metrics("split-one").steps.front().loss);
}

// Its positions are rotary: those of separate documents come from the data.
TEST(RunOnCorpora, TokensTrainALlamaTheSameOnOneAndThreeWorkers) {
  const TrainCase job(kTokensJob);
  write_corpus(job);
  const Settings settings = {"data.train.files=" + job.folder().path("corpus"), "model.family=llama",
                             "model.kv_heads=1", "data.pack=best_fit", "data.documents=separate"};
  expect_same_bits(job, "packed", settings, 12);
  EXPECT_LT(job.metrics("packed-one").steps.back().loss, job.metrics("packed-one").steps.front().loss);
}

TEST(RunOnCorpora, ImagesTrainTheSameOnOneAndThreeWorkers) {
  const TrainCase job(kImagesJob);
  write_images(job);
  expect_same_bits(job, "folder", {"data.train.files=" + job.folder().path("images")}, 8);
}

TEST(RunOnCorpora, TarShardsTrainTheSameOnOneAndThreeWorkers) {
  const TrainCase job(kImagesJob);
  write_shards(job);
  expect_same_bits(
      job, "tar",
      {"data.train.format=tar", "data.train.files=" + job.folder().path("shards/*.tar"), "train.steps=4"}, 4);
}

TEST(RunOnCorpora, ABrokenImageNamesItsFile) {
  const TrainCase job(kImagesJob);
  write_images(job);
  job.folder().write("images/" + image_name(1, 2) + ".jpg", image_bytes(1, 2).substr(0, 500));
  const Ended ended =
      job.train("broken", {"data.train.files=" + job.folder().path("images"), "train.steps=20"});
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_NE(ended.err.find("images/b/2.jpg: cannot decode the image"), std::string::npos) << ended.err;
}

TEST(RunOnCorpora, ACorpusBeyondTheVocabularyIsRefused) {
  const TrainCase job(kTokensJob);
  write_corpus(job);
  const Ended ended =
      job.train("small", {"data.train.files=" + job.folder().path("corpus"), "model.vocab=32"});
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(job.output("small"))) << "it is found before the run begins";
  EXPECT_NE(ended.err.find("is not in the vocabulary of 32"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace lockstep

// Runs of encoders from a Hugging Face folder: masked LM on a corpus of tokens, classes of texts and of
// images. The same bits for one and for three workers and after a restart; what was trained is a folder to
// begin with, and an ONNX model.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/testing/test_corpora.h"
#include "data/testing/test_images.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

using Settings = std::vector<std::string>;

constexpr const char* kBert =
    R"({"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 300,
  "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
  "max_position_embeddings": 24, "pad_token_id": 0})";
constexpr const char* kRoberta = R"({"model_type": "roberta", "architectures": ["RobertaForMaskedLM"],
  "vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
  "intermediate_size": 32, "max_position_embeddings": 26, "type_vocab_size": 1})";
constexpr const char* kVit = R"({"model_type": "vit", "architectures": ["ViTForImageClassification"],
  "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
  "image_size": 16, "patch_size": 4, "hidden_dropout_prob": 0.1})";

constexpr const char* kMaskedJob = R"(
name: masked
model: {hf: unset, init: random, seq: 16}
data: {train: {format: tokens, files: unset}, mask: {token: 299, special: [0, 5]}, hold_out: 0.1, seed: 3}
train:
  steps: 12
  global_batch: 16
  microbatch: 4
  lr: {base: 1e-2}
  eval: {every: 6, metric: perplexity}
strategy: {leaves: 4, threads: 1}
checkpoint: {every: 6, keep: 2}
)";
constexpr const char* kTextJob = R"(
name: text
model: {hf: unset, init: random, head: sequence_classification, classes: 3, seq: 24}
data: {train: {format: jsonl, files: unset, text: subject, label: kind}, hold_out: 0.2, seed: 3}
train:
  steps: 24
  global_batch: 16
  microbatch: 4
  lr: {base: 1e-2}
  eval: {every: 12, metric: accuracy}
strategy: {leaves: 4, threads: 1}
checkpoint: {every: 12, keep: 2}
)";
constexpr const char* kImagesJob = R"(
name: images
model: {hf: unset, init: random, classes: 3}
data: {train: {format: images, files: unset}, images: {flip: false}, hold_out: 0.2, seed: 3}
train:
  steps: 8
  global_batch: 8
  microbatch: 2
  lr: {base: 1e-2}
  eval: {every: 4, metric: accuracy}
strategy: {leaves: 4, threads: 1}
checkpoint: {every: 4, keep: 2}
)";

// A job on the model of a folder that holds nothing but its config.json and what is written beside it.
class EncoderRun : public TrainCase {
 public:
  EncoderRun(const char* job, const char* config) : TrainCase(job) {
    folder().write("model/config.json", config);
  }

  std::string path(const std::string& name) const { return folder().path(name); }
  Settings settings(const std::string& data) const {
    return {"model.hf=" + path("model"), "data.train.files=" + path(data)};
  }

  // Trains with one and with three workers, and once more in two parts.
  RunSummary expect_same_bits(Settings settings, int64_t steps) const {
    const RunSummary one = trained("one", settings);
    Settings three = settings;
    three.emplace_back("strategy.workers=3");
    EXPECT_EQ(trained("three", three).weights_sha256, one.weights_sha256);
    expect_same_steps(metrics("three"), metrics("one"));
    expect_same_evaluations(metrics("three"), metrics("one"));
    settings.push_back(fmt::format("train.steps={}", steps / 2));
    trained("parts", settings);
    settings.back() = fmt::format("train.steps={}", steps);
    EXPECT_EQ(trained("parts", settings).weights_sha256, one.weights_sha256);
    EXPECT_LT(metrics("one").steps.back().loss, metrics("one").steps.front().loss);
    return one;
  }

  Ended exports_onnx(const std::string& run) const {
    return LockstepProcess({"export", output(run), "--to", "onnx", "--out", path("model.onnx")},
                           path("export-log"))
        .wait();
  }

  // Fifty documents that count up in steps of three.
  void write_corpus() const {
    Documents documents;
    for (int d = 0; d < 50; ++d) {
      documents.emplace_back();
      for (int i = 0; i < 8 + d * 37 % 60; ++i) documents.back().push_back(5 + (d + i * 3) % 200);
    }
    folder().write("corpus/c.idx", megatron_index(documents, 8, 2));
    folder().write("corpus/c.bin", token_bytes<uint16_t>(documents));
  }

  void write_images() const {
    for (int kind = 0; kind < 3; ++kind)
      for (int i = 0; i < 8; ++i)
        folder().write(fmt::format("images/{}/{}.png", "abc"[kind], i),
                       to_png(striped_image(24 + i, 20, kind, i)));
  }
};

TEST(HfEncoderRun, MaskedLmTrainsOnACorpus) {
  const EncoderRun job(kMaskedJob, kBert);
  job.write_corpus();
  const RunSummary plain = job.expect_same_bits(job.settings("corpus"), 12);
  const Ended exported = job.exports_onnx("one");
  EXPECT_EQ(exported.code, 0) << exported.err;
  // Another share masks other tokens; and so do the documents of a row kept apart.
  Settings settings = job.settings("corpus");
  settings.emplace_back("data.mask.share=0.3");
  const RunSummary more = job.trained("more", settings);
  EXPECT_NE(more.identity_sha256, plain.identity_sha256);
  settings.back() = "data.pack=best_fit";
  settings.emplace_back("data.documents=separate");
  job.trained("apart", settings);
}

// A model that began with drawn weights goes on as a folder with weights, under another head too.
TEST(HfEncoderRun, WhatWasTrainedIsAFolderToBeginWith) {
  const EncoderRun job(kMaskedJob, kRoberta);
  job.write_corpus();
  job.trained("first", job.settings("corpus"));
  Settings settings = job.settings("corpus");
  settings[0] = "model.hf=" + job.output("first") + "/checkpoint-12";
  settings.emplace_back("model.init=pretrained");
  job.trained("second", settings);
  EXPECT_LT(job.metrics("second").steps.front().loss, job.metrics("first").steps.front().loss);
}

TEST(HfEncoderRun, MaskedLmNeedsItsToken) {
  const EncoderRun job(kMaskedJob, kBert);
  job.write_corpus();
  Settings settings = job.settings("corpus");
  settings.emplace_back("data.mask.token=300");
  Ended ended = job.train("beyond", settings);
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_NE(ended.err.find("data.mask.token has 300; the model's tokens are below 300"), std::string::npos)
      << ended.err;
}

TEST(HfEncoderRun, TextsAreClassified) {
  const EncoderRun job(kTextJob, kRoberta);
  std::string lines;
  for (int i = 0; i < 90; ++i)
    lines += fmt::format("{{\"subject\": \"{} {}\", \"kind\": {}}}\n",
                         i % 3 == 0   ? "order"
                         : i % 3 == 1 ? "refund"
                                      : "hello",
                         i, i % 3);
  job.folder().write("mail.jsonl", lines);
  job.expect_same_bits(job.settings("mail.jsonl"), 24);
  EXPECT_EQ(job.exports_onnx("one").code, 0);
  Settings settings = job.settings("mail.jsonl");
  settings.emplace_back("data.mask.share=0.2");
  const Ended ended = job.train("masked", settings);
  EXPECT_NE(ended.err.find("data.mask.share is for models with a masked LM head"), std::string::npos)
      << ended.err;
}

TEST(HfEncoderRun, ImagesAreClassifiedAsTheFolderSays) {
  const EncoderRun job(kImagesJob, kVit);
  job.write_images();
  job.folder().write("model/preprocessor_config.json",
                     R"({"size": {"height": 16, "width": 16}, "image_mean": [0.5, 0.5, 0.5],
                         "image_std": [0.5, 0.5, 0.25]})");
  const RunSummary own = job.expect_same_bits(job.settings("images"), 8);
  EXPECT_EQ(job.exports_onnx("one").code, 0);
  // What the folder said is what the job can say.
  const EncoderRun plain(kImagesJob, kVit);
  plain.write_images();
  Settings settings = plain.settings("images");
  for (const char* said : {"data.images.mean=[0.5, 0.5, 0.5]", "data.images.deviation=[0.5, 0.5, 0.25]",
                           "data.images.fit=stretch"})
    settings.emplace_back(said);
  EXPECT_EQ(plain.trained("said", settings).weights_sha256, own.weights_sha256);
  EXPECT_NE(plain.trained("unsaid", plain.settings("images")).weights_sha256, own.weights_sha256);
  job.folder().write("model/preprocessor_config.json", R"({"size": 32})");
  const Ended ended = job.train("larger", job.settings("images"));
  EXPECT_NE(ended.err.find("makes images of 32 pixels, and the model of config.json takes 16"),
            std::string::npos)
      << ended.err;
}

// No format of data has a class for every token.
TEST(HfEncoderRun, ClassesOfTokensAreRefused) {
  const EncoderRun job(kMaskedJob, kBert);
  job.write_corpus();
  Settings settings = job.settings("corpus");
  settings.emplace_back("model.head=token_classification");
  const Ended ended = job.train("tokens", settings);
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_NE(ended.err.find("no format of data has a class for each"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace lockstep

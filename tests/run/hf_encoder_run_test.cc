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

// Words in lower case between [CLS] and [SEP].
constexpr const char* kTokenizer = R"({"version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [
    {"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
     "special": true},
    {"id": 1, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
     "special": true},
    {"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
     "special": true},
    {"id": 3, "content": "[SEP]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
     "special": true},
    {"id": 4, "content": "[MASK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
     "special": true}],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                 "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
    "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
             {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
             {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                       "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "order": 5, "refund": 6,
                      "hello": 7, "a": 8, "##b": 9, "of": 10, "the": 11, "day": 12, "1": 13, "##1": 14,
                      "2": 15, "##2": 16, "3": 17, "##3": 18}}})";

std::string mail() {
  std::string lines;
  for (int i = 0; i < 90; ++i)
    lines += fmt::format("{{\"subject\": \"{} of the day {}\", \"kind\": {}}}\n",
                         std::vector{"Order", "Refund", "Hello"}[static_cast<size_t>(i % 3)], 1 + i % 3 * 11,
                         i % 3);
  return lines;
}

// Which tokens are the mask and special comes from the folder, text as well as corpora can be masked.
TEST(HfEncoderRun, TheFoldersTokenizerIsUsed) {
  const EncoderRun job(kMaskedJob, kBert);
  job.folder().write("mail.jsonl", mail());
  Settings settings = job.settings("mail.jsonl");
  for (const char* said :
       {"data.train.format=jsonl", "data.train.text=subject", "data.mask.token=", "data.mask.special="})
    settings.emplace_back(said);
  const Ended none = job.train("none", settings);
  EXPECT_EQ(none.code, 2) << none.err;
  job.folder().write("model/tokenizer.json", kTokenizer);
  const RunSummary found = job.expect_same_bits(settings, 12);
  settings[4] = "data.mask.token=4";
  settings[5] = "data.mask.special=[0, 1, 2, 3, 4]";
  EXPECT_EQ(job.trained("said", settings).weights_sha256, found.weights_sha256);

  const EncoderRun classes(kTextJob, kBert);
  classes.folder().write("mail.jsonl", mail());
  classes.folder().write("model/tokenizer.json", kTokenizer);
  Settings longer = classes.settings("mail.jsonl");
  longer.emplace_back("train.steps=120");
  longer.emplace_back("train.lr.base=3e-3");
  classes.expect_same_bits(longer, 120);
  EXPECT_GT(*classes.metrics("one").evaluations.back().accuracy, 0.9);
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

// Labels may be the names that config.json has, and answers have them.
TEST(HfEncoderRun, ClassesHaveTheNamesOfTheFolder) {
  const std::string named = std::string(kRoberta).substr(0, std::string_view(kRoberta).size() - 1) +
                            R"(, "id2label": {"0": "order", "1": "refund", "2": "hello"}})";
  const EncoderRun numbers(kTextJob, kRoberta), names(kTextJob, named.c_str());
  std::string lines = mail();
  numbers.folder().write("mail.jsonl", lines);
  for (const auto& [number, name] : {std::pair{"\"kind\": 0", "\"kind\": \"order\""},
                                     {"\"kind\": 1", "\"kind\": \"refund\""},
                                     {"\"kind\": 2", "\"kind\": \"hello\""}})
    for (size_t at = lines.find(number); at != std::string::npos; at = lines.find(number, at + 1))
      lines.replace(at, std::string_view(number).size(), name);
  names.folder().write("mail.jsonl", lines);
  EXPECT_EQ(names.trained("names", names.settings("mail.jsonl")).weights_sha256,
            numbers.trained("numbers", numbers.settings("mail.jsonl")).weights_sha256);
  const Ended predicted = LockstepProcess({"predict", names.output("names"), "--data",
                                           names.path("mail.jsonl"), "--out", names.path("answers.csv")},
                                          names.path("predict-log"))
                              .wait();
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_NE(read_file(names.path("answers.csv")).find("refund"), std::string::npos);
  lines.replace(lines.find("\"hello\""), 7, "\"helo\"");
  names.folder().write("wrong.jsonl", lines);
  const Ended ended = names.train("wrong", names.settings("wrong.jsonl"));
  EXPECT_NE(ended.err.find("the label 'kind' is 'helo', which is no class of the model; did you mean hello?"),
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

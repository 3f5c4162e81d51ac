// Runs on text: documents and conversations tokenized with the tokenizer of a model's folder.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/hf/folder_testing.h"
#include "run/tiny_tokenizer.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrain = R"(
train: {steps: 6, global_batch: 8, microbatch: 2, lr: {base: 0.01}}
)";

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

// Conversation i, as JSON.
std::string prompt_of(int i) { return fmt::format("what is the number after {}?", i); }
std::string response_of(int i) { return fmt::format("it is {}", i + 1); }

class TextCase : public TrainCase {
 public:
  explicit TextCase(const std::string& data, const std::string& model = "", bool frame = false)
      : TrainCase("model: {hf: FOLDER, seq: 64" + model + "}\n" + data + kTrain) {
    nlohmann::ordered_json config = testing::tiny_llama_config();
    config["vocab_size"] = testing::kTinyVocabulary;
    config["max_position_embeddings"] = 64;
    config["pad_token_id"] = 102;
    testing::write_tiny_folder(model_, config);
    model_.write("tokenizer.json", testing::tiny_tokenizer(frame));
    model_.write("tokenizer_config.json", testing::tiny_tokenizer_config());
    std::string chats, table = "question,answer\n", texts;
    for (int i = 0; i < 60; ++i) {
      chats += fmt::format(
          "{{\"messages\": [{{\"role\": \"user\", \"content\": {}}}, {{\"role\": \"assistant\", \"content\": "
          "{}}}]}}\n",
          quoted(prompt_of(i)), quoted(response_of(i)));
      table += fmt::format("{},{}\n", prompt_of(i), response_of(i));
      texts += fmt::format("{{\"text\": {}, \"label\": {}}}\n", quoted(prompt_of(i) + " " + response_of(i)),
                           i % 3);
    }
    folder().write("chats.jsonl", chats);
    folder().write("chats.csv", table);
    folder().write("texts.jsonl", texts);
    std::string job = read_file(folder().path("job.yaml"));
    for (const auto& [name, path] :
         {std::pair<std::string, std::string>{"FOLDER", model_.path()}, {"HERE", folder().path()}})
      for (size_t at = job.find(name); at != std::string::npos; at = job.find(name, at + path.size()))
        job.replace(at, name.size(), path);
    folder().write("job.yaml", job);
  }
  const TestFolder& model() const { return model_; }
  Ended lockstep(const std::vector<std::string>& arguments) const {
    return LockstepProcess(arguments, folder().path("tool-log")).wait();
  }
  std::string refused(const std::vector<std::string>& settings) const {
    const Ended ended = train("refused", settings);
    EXPECT_EQ(ended.code, 2) << ended.err;
    return ended.err;
  }

 private:
  TestFolder model_;
};

constexpr const char* kChats = R"(
data:
  train: {format: jsonl, files: HERE/chats.jsonl, messages: messages}
)";
constexpr const char* kTexts = R"(
data:
  train: {format: jsonl, files: HERE/texts.jsonl, text: text}
)";

TEST(TextRun, ConversationsTrainToTheSameBitsOnAnyLayout) {
  const TextCase job(kChats);
  const Ended checked = job.lockstep({"check", job.folder().path("job.yaml")});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_NE(checked.out.find("60 conversations"), std::string::npos) << checked.out;
  EXPECT_FALSE(fs::exists(job.folder().path(".lockstep-index"))) << "check wrote beside the data";
  const std::string hash = job.trained("one", {"strategy.threads=1", "data.readers=1"}).weights_sha256;
  const Ended again = job.train("again", {"data.readers=3"});
  EXPECT_NE((again.out + again.err).find("tokenized before"), std::string::npos) << again.out;
  EXPECT_EQ(job.summary("again").weights_sha256, hash);
  EXPECT_EQ(job.trained("two", {"strategy.workers=2"}).weights_sha256, hash);
  // The same conversations from columns of a CSV file, and with the template by its name.
  EXPECT_EQ(job.trained("csv", {"data.train.format=csv", "data.train.files=" + job.folder().path("chats.csv"),
                                "data.train.messages=", "data.train.prompt=question",
                                "data.train.response=answer", "data.chat_template=chatml"})
                .weights_sha256,
            hash);
}

TEST(TextRun, WhatIsCutAndLeftOutIsSaid) {
  const TextCase job(kChats);
  const Ended ended = job.train("short", {"model.seq=46", "train.steps=1"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE((ended.out + ended.err).find("longer than 47 tokens are cut"), std::string::npos) << ended.out;
}

TEST(TextRun, TextIsLearntAsTheCorpusThatTokenizeWrites) {
  const TextCase job(kTexts);
  const std::string hash = job.trained("text").weights_sha256;
  const auto tokenize = [&](const std::string& out, const std::string& threads) {
    const Ended ended =
        job.lockstep({"tokenize", "--tokenizer", job.model().path(), "--out", job.folder().path(out),
                      "--column", "text", "--threads", threads, job.folder().path("texts.jsonl")});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_NE(ended.out.find("60 documents"), std::string::npos) << ended.out;
    return read_file(job.folder().path(out));
  };
  EXPECT_EQ(tokenize("one.bin", "1"), tokenize("two.bin", "2"));
  EXPECT_EQ(job.trained("tokens", {"data.train.format=tokens",
                                   "data.train.text=", "data.train.files=" + job.folder().path("one.bin")})
                .weights_sha256,
            hash);
}

TEST(TextRun, TextIsClassifiedWithTheFoldersTokenizer) {
  const TextCase job(R"(
data:
  train: {format: jsonl, files: HERE/texts.jsonl, text: text, label: label}
)",
                     ", head: sequence_classification, classes: 3", true);
  const std::string hash = job.trained("one").weights_sha256;
  EXPECT_EQ(job.trained("two", {"strategy.workers=2", "data.readers=3"}).weights_sha256, hash);
  // Tokens that a transform makes are those that the text becomes by itself.
  EXPECT_EQ(
      job.trained("tokenise", {"data.train.transforms=[{name: tokenise, columns: [text]}]"}).weights_sha256,
      hash);
}

TEST(TextRun, WhatDoesNotGoTogetherIsRefused) {
  const TextCase job(kChats);
  EXPECT_NE(job.refused({"data.train.messages=talk"}).find("talk"), std::string::npos);
  EXPECT_NE(job.refused({"data.train.messages="}).find("does not say which column"), std::string::npos);
  EXPECT_NE(job.refused({"data.chat_template=chatmll"}).find("did you mean chatml"), std::string::npos);
  job.folder().write("bad.jsonl",
                     "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
                     "\"content\": \" \"}]}\n");
  const std::string empty = job.refused({"data.train.files=" + job.folder().path("bad.jsonl")});
  EXPECT_NE(empty.find("bad.jsonl:1: the response in message 2 is empty"), std::string::npos) << empty;
  // A tokenizer of more tokens than the model has.
  const TextCase other(kChats);
  nlohmann::ordered_json config = testing::tiny_llama_config();
  config["vocab_size"] = 50;
  config["max_position_embeddings"] = 64;
  testing::write_tiny_folder(other.model(), config);
  EXPECT_NE(other.refused({}).find("the tokenizer is not the model's"), std::string::npos);
}

}  // namespace
}  // namespace lockstep

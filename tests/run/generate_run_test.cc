// `lockstep generate` on runs of this program: it writes what was learned, in bytes, and the same for any
// number of threads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "run/train_case.h"

namespace lockstep {
namespace {

// A text that can be learned by heart in a second: each letter has one that follows it.
constexpr const char* kJob = R"(
name: letters
model: {family: gpt, layers: 1, dim: 32, heads: 2, vocab: 256, seq: 32}
data: {train: {format: text, files: unset}}
train: {steps: 60, global_batch: 16, microbatch: 8, lr: {base: 1e-2}}
)";

class GenerateRun : public ::testing::Test {
 protected:
  GenerateRun() : job_(kJob) {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "abcdefghijklmnopqrstuvwxyz";
    job_.folder().write("prose/t.txt", text);
  }
  void train(const std::string& run, std::vector<std::string> settings) {
    settings.push_back("data.train.files=" + job_.folder().path("prose"));
    job_.trained(run, settings);
  }
  Ended generate(const std::string& run, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"generate", job_.output(run)});
    return LockstepProcess(arguments, job_.log(run + "-generate")).wait();
  }

  TrainCase job_;
};

TEST_F(GenerateRun, GptWritesOnWhatItLearned) {
  train("gpt", {});
  const Ended ended = generate("gpt", {"--prompt", "hijk", "--max-tokens", "12"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "lmnopqrstuvw\n");
  const Ended stopped =
      generate("gpt", {"--prompt", "hijk", "--max-tokens", "12", "--stop", "pq", "--quiet"});
  EXPECT_EQ(stopped.out, "lmno\n");
  EXPECT_EQ(stopped.err, "");
  const Ended ids = generate("gpt", {"--ids", "--prompt", "104 105", "--max-tokens", "3"});
  EXPECT_EQ(ids.out, "106 107 108\n");
}

TEST_F(GenerateRun, LlamaInBf16DrawsTheSameTextOnAnyNumberOfThreads) {
  train("llama", {"model.family=llama", "model.kv_heads=1", "train.precision=bf16"});
  const auto drawn = [&](const char* threads, const char* seed) {
    const Ended ended = generate("llama", {"--prompt", "ab", "--max-tokens", "20", "--temperature", "2",
                                           "--seed", seed, "--threads", threads, "--top-k", "0"});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  };
  const std::string once = drawn("1", "1");
  EXPECT_EQ(drawn("2", "1"), once);
  EXPECT_NE(drawn("1", "2"), once);
}

TEST_F(GenerateRun, RefusesWhatCannotBe) {
  train("gpt", {"train.steps=1"});
  const auto says = [&](std::vector<std::string> arguments, int code, const char* words) {
    const Ended ended = generate("gpt", std::move(arguments));
    EXPECT_EQ(ended.code, code) << ended.err;
    EXPECT_NE(ended.err.find(words), std::string::npos) << ended.err;
  };
  says({}, 2, "--prompt");
  says({"--prompt", ""}, 2, "no token");
  says({"--prompt", "abc", "--max-tokens", "31"}, 2, "32");
  says({"--prompt", "abc", "--memory", "10000", "--max-tokens", "5"}, 3, "cache");
  says({"--prompt", "abc", "--greedy", "--temperature", "2"}, 2, "excludes");
  says({"--prompt", "7 x", "--ids"}, 2, "'x' is no token");
}

TEST_F(GenerateRun, OtherFamiliesDoNotWrite) {
  const TrainCase tabular(kTabularJob);
  tabular.trained("run");
  const Ended ended =
      LockstepProcess({"generate", tabular.output("run"), "--prompt", "a"}, tabular.log("g")).wait();
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("tabular does not write text"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace lockstep

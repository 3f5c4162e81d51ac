// Runs of Hugging Face folders: the same bits on any layout, frozen parts, LoRA, and folders written again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include "model/hf/folder_testing.h"
#include "run/folder_events.h"
#include "run/train_case.h"
#include "safetensors/reader.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJob = R"(
data:
  train: {format: synthetic, samples: 256}
  eval: {format: synthetic, samples: 32}
train: {steps: 8, global_batch: 16, microbatch: 4, lr: {base: 0.01}}
checkpoint: {every: 4, keep: 0}
)";

const std::vector<std::string> kLora = {"train.lora.rank=4", "train.lora.dropout=0.1"};

class HfCase : public TrainCase {
 public:
  explicit HfCase(DType dtype = DType::kF32)
      : TrainCase(std::string("model: {hf: ") + "FOLDER, seq: 8}" + kJob) {
    testing::write_tiny_folder(model_, testing::tiny_llama_config(), dtype);
    model_.write("tokenizer.json", "{\"version\": \"1.0\"}\n");
    std::string job = read_file(folder().path("job.yaml"));
    job.replace(job.find("FOLDER"), 6, model_.path());
    folder().write("job.yaml", job);
  }
  const TestFolder& model() const { return model_; }

  Ended lockstep(std::vector<std::string> arguments) const {
    return LockstepProcess(arguments, folder().path("tool-log")).wait();
  }
  std::string exported(const std::string& run, const std::string& to,
                       std::vector<std::string> more = {}) const {
    const std::string out = folder().path(fmt::format("{}-{}-{}", run, to, exports_++));
    std::vector<std::string> arguments = {"export", output(run), "--to", to, "--out", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = lockstep(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return out;
  }
  double loss(const std::string& run) const { return metrics(run).evaluations.back().loss; }
  RunSummary with(const std::string& run, const std::vector<std::string>& a,
                  const std::vector<std::string>& b) const {
    std::vector<std::string> all = a;
    all.insert(all.end(), b.begin(), b.end());
    return trained(run, all);
  }
  // A run that changes nothing: what it ends with is what it began with.
  RunSummary at_rest(const std::string& run, std::vector<std::string> settings) const {
    settings.insert(settings.end(), {"train.lr.base=0", "train.optimizer.weight_decay=0", "train.steps=1",
                                     "checkpoint.every="});
    return trained(run, settings);
  }

 private:
  TestFolder model_;
  mutable int exports_ = 0;
};

void expect_one_hash(const std::vector<std::string>& settings) {
  const HfCase job(DType::kBF16);
  const std::string hash = job.with("one", settings, {"strategy.threads=1"}).weights_sha256;
  EXPECT_EQ(job.with("threads", settings, {"strategy.threads=3"}).weights_sha256, hash);
  for (const int workers : {2, 3, 4})
    EXPECT_EQ(job.with(fmt::format("p{}", workers), settings, {fmt::format("strategy.workers={}", workers)})
                  .weights_sha256,
              hash);
  EXPECT_EQ(job.with("again", settings, {"train.recompute=block"}).weights_sha256, hash);
  const std::vector<std::string> stages = {"strategy.workers=2", "strategy.pipeline=2",
                                           "strategy.reduce.bucket=4KiB"};
  EXPECT_EQ(job.with("stages", settings, stages).weights_sha256, hash);
  // Unit by unit, which hold what is trained and, as the folder stores it, what is frozen.
  expect_same_evaluations(job.metrics("stages"), job.metrics("one"));

  fs::create_directories(job.output("killed"));
  {
    FolderEvents events(job.output("killed"));
    LockstepProcess process(job.arguments("killed", settings), job.log("killed"));
    while (const auto event = events.next(process))
      if (event->name == "checkpoint-4") break;
    process.send(SIGKILL);
    process.wait();
  }
  // The folder is needed for the identity alone by now.
  EXPECT_EQ(job.with("killed", settings, {"strategy.workers=2"}).weights_sha256, hash);
}

TEST(HfRun, FullTuningIsTheSameOnAnyLayoutAndAfterAKill) { expect_one_hash({}); }
TEST(HfRun, LoraIsTheSameOnAnyLayoutAndAfterAKill) { expect_one_hash(kLora); }

TEST(HfRun, BeginsWithTheFoldersWeights) {
  const HfCase job;
  job.at_rest("rest", {});
  const SafetensorsReader kept(job.output("rest") + "/checkpoint-1/model.safetensors");
  const SafetensorsReader given(job.model().path("model.safetensors"));
  ASSERT_EQ(kept.tensors().size(), given.tensors().size());
  for (const TensorEntry& entry : given.tensors()) {
    const FileMapping a = given.map(entry), b = kept.map(kept.at(entry.tensor));
    EXPECT_TRUE(std::ranges::equal(a.bytes(), b.bytes())) << entry.tensor.name;
  }
  EXPECT_NE(job.at_rest("drawn", {"model.init=random"}).weights_sha256, job.summary("rest").weights_sha256);
}

TEST(HfRun, WithoutAnF32CopyTheFoldersBitsAreTheWeights) {
  const HfCase job(DType::kBF16);
  const std::string hash = job.at_rest("pure", {"train.precision=bf16_pure"}).weights_sha256;
  const SafetensorsReader kept(job.output("pure") + "/checkpoint-1/model.safetensors");
  const SafetensorsReader given(job.model().path("model.safetensors"));
  for (const TensorEntry& entry : given.tensors()) {
    const FileMapping a = given.map(entry), b = kept.map(kept.at(entry.tensor));
    EXPECT_TRUE(std::ranges::equal(a.bytes(), b.bytes())) << entry.tensor.name;
  }
  const std::string exported = job.exported("pure", "hf");
  EXPECT_EQ(job.at_rest("again", {"train.precision=bf16_pure", "model.hf=" + exported}).weights_sha256, hash);
}

TEST(HfRun, MovingAveragesBeginWithTheFoldersWeights) {
  const HfCase job;
  job.at_rest("average", {"train.ema=0.9"});
  job.at_rest("plain", {});
  EXPECT_EQ(job.loss("average"), job.loss("plain"));
}

TEST(HfRun, OtherWeightsAreAnotherIdentity) {
  const HfCase job;
  const std::string before = job.at_rest("a", {}).identity_sha256;
  EXPECT_EQ(job.at_rest("b", {}).identity_sha256, before);
  const auto config = testing::tiny_llama_config();
  testing::write_tiny_file(job.model().path(), "model.safetensors", testing::tensors_of_config(config),
                           {{"model.norm.weight", std::vector<float>(16, 1.0f)}});
  EXPECT_NE(job.at_rest("c", {}).identity_sha256, before);
}

TEST(HfRun, FrozenPartsKeepTheirBytesAndHaveNoState) {
  const HfCase job(DType::kBF16);
  job.trained("run", {"train.freeze=[\"model.embed_tokens.*\", \"model.layers.0.*\"]"});
  const std::string last = job.output("run") + "/checkpoint-8/";
  const SafetensorsReader kept(last + "model.safetensors");
  const SafetensorsReader given(job.model().path("model.safetensors"));
  for (const TensorEntry& entry : given.tensors()) {
    const std::string& name = entry.tensor.name;
    const bool frozen = name.starts_with("model.embed") || name.starts_with("model.layers.0.");
    EXPECT_EQ(kept.at(name).tensor.dtype, frozen ? DType::kBF16 : DType::kF32) << name;
    if (!frozen) continue;
    const FileMapping a = given.map(entry), b = kept.map(kept.at(name));
    EXPECT_TRUE(std::ranges::equal(a.bytes(), b.bytes())) << name;
  }
  const SafetensorsReader optimizer(last + "optimizer.safetensors");
  for (const TensorEntry& entry : optimizer.tensors())
    EXPECT_EQ(entry.tensor.name.find("layers.0."), std::string::npos) << entry.tensor.name;
  const RunSummary only =
      job.trained("only", {"train.train_only=[\"model.layers.1.*\", \"model.norm*\", lm_head.*]"});
  EXPECT_EQ(only.weights_sha256, job.summary("run").weights_sha256);
}

TEST(HfRun, HalvesAreFrozenAsTheyAre) {
  const HfCase job(DType::kF16);
  const std::string hash = job.trained("run", kLora).weights_sha256;
  EXPECT_EQ(job.with("two", kLora, {"strategy.workers=2"}).weights_sha256, hash);
  const std::string merged = job.exported("run", "hf", {"--merge"});
  EXPECT_EQ(SafetensorsReader(merged + "/model.safetensors").at("lm_head.weight").tensor.dtype, DType::kF16);
}

TEST(HfRun, LoraLeavesTheBaseInItsFolder) {
  const HfCase job(DType::kBF16);
  job.trained("run", kLora);
  const std::string last = job.output("run") + "/checkpoint-8";
  EXPECT_FALSE(fs::exists(last + "/model.safetensors"));
  const SafetensorsReader kept(last + "/trained.safetensors");
  for (const TensorEntry& entry : kept.tensors())
    EXPECT_NE(entry.tensor.name.find("lora_"), std::string::npos) << entry.tensor.name;
  // What it is used for reads the rest where it was.
  const std::string merged = job.exported("run", "hf", {"--merge"});
  const SafetensorsReader given(job.model().path("model.safetensors"));
  const SafetensorsReader written(merged + "/model.safetensors");
  const FileMapping a = given.map(given.at("lm_head.weight"));
  const FileMapping b = written.map(written.at("lm_head.weight"));
  EXPECT_TRUE(std::ranges::equal(a.bytes(), b.bytes()));
  const Ended evaluated = job.lockstep({"eval", job.output("run")});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_NE(evaluated.out.find(fmt::format("{}", job.loss("run"))), std::string::npos) << evaluated.out;
  const Ended written_on =
      job.lockstep({"generate", job.output("run"), "--ids", "--prompt", "1 2 3", "--max-tokens", "4"});
  EXPECT_EQ(written_on.code, 0) << written_on.err;
}

TEST(HfRun, ABaseThatIsGoneOrAnotherIsRefused) {
  const HfCase job;
  const std::string hash = job.trained("run", kLora).weights_sha256;
  const auto expect = [&](const char* part) {
    for (const std::vector<std::string>& use :
         {std::vector<std::string>{"eval", job.output("run")},
          {"export", job.output("run"), "--to", "peft", "--out", job.folder().path("no")}}) {
      const Ended ended = job.lockstep(use);
      EXPECT_EQ(ended.code, 2) << ended.err;
      EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
    }
  };
  const fs::path home = fs::path(job.model().path() + "/.").lexically_normal().parent_path();
  const std::string moved = job.folder().path("moved");
  fs::rename(home, moved);
  expect("that folder is gone: put it there again");
  fs::create_directory_symlink(moved, home);
  EXPECT_EQ(job.lockstep({"eval", job.output("run")}).code, 0);
  // And from where the job finds it, a run goes on.
  EXPECT_EQ(job.with("run", kLora, {"model.hf=" + moved}).weights_sha256, hash);
  testing::write_tiny_file(moved, "model.safetensors",
                           testing::tensors_of_config(testing::tiny_llama_config()),
                           {{"model.norm.weight", std::vector<float>(16, 1.0f)}});
  expect("those that lie there now are others");
  fs::remove(home);
  fs::rename(moved, home);
}

TEST(HfRun, WhatLoraTrainedAloneIsNoFolderToBeginWith) {
  const HfCase job;
  job.trained("run", kLora);
  const std::string last = job.output("run") + "/checkpoint-8";
  const Ended begun = job.train("again", {"model.hf=" + last});
  EXPECT_NE(begun.err.find("holds what was trained alone"), std::string::npos) << begun.err;
  const Ended whole = job.train("whole", {"train.init_from.run=" + last});
  EXPECT_NE(whole.err.find("--to hf --merge"), std::string::npos) << whole.err;
  // Its matrices go on beside the same base.
  const RunSummary on = job.with("on", kLora,
                                 {"train.init_from.run=" + last, "train.init_from.only=[\"*lora_*\"]",
                                  "train.lr.base=0", "train.optimizer.weight_decay=0"});
  EXPECT_EQ(on.weights_sha256, job.summary("run").weights_sha256);
}

TEST(HfRun, TheLastCheckpointHoldsAsMuchAsTheJobSays) {
  const HfCase job;
  const std::string hash = job.trained("all").weights_sha256;
  EXPECT_EQ(job.trained("weights", {"checkpoint.final=weights"}).weights_sha256, hash);
  EXPECT_TRUE(fs::exists(job.output("weights") + "/checkpoint-4/optimizer.safetensors"));
  EXPECT_FALSE(fs::exists(job.output("weights") + "/checkpoint-8/optimizer.safetensors"));
  EXPECT_EQ(job.at_rest("used", {"model.hf=" + job.exported("weights", "hf")}).weights_sha256, hash);
  const Ended twice = job.train("weights", {"checkpoint.final=weights"});
  EXPECT_EQ(twice.code, 0) << twice.err;
  EXPECT_NE(twice.err.find("is finished"), std::string::npos) << twice.err;
  const Ended further = job.train("weights", {"checkpoint.final=weights", "train.steps=12"});
  EXPECT_EQ(further.code, 2) << further.err;
  EXPECT_NE(further.err.find("holds weights alone"), std::string::npos) << further.err;
  // Its summary lost, there is nothing left to do but to write it again.
  fs::remove(job.output("weights") + "/summary.json");
  EXPECT_EQ(job.trained("weights", {"checkpoint.final=weights"}).weights_sha256, hash);

  EXPECT_EQ(job.trained("none", {"checkpoint.final=none"}).weights_sha256, hash);
  EXPECT_TRUE(fs::exists(job.output("none") + "/checkpoint-4"));
  EXPECT_FALSE(fs::exists(job.output("none") + "/checkpoint-8"));
}

TEST(HfRun, NeedsItsFolderNoMoreOnceItHasBegun) {
  const HfCase job;
  job.trained("run", kLora);
  fs::rename(job.model().path("config.json"), job.model().path("gone"));
  const Ended ended = job.lockstep({"eval", job.output("run")});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find(fmt::format("{}", job.loss("run"))), std::string::npos) << ended.out;
  EXPECT_EQ(read_file(job.output("run") + "/checkpoint-8/tokenizer.json"), "{\"version\": \"1.0\"}\n");
}

TEST(HfRun, ItsCheckpointsAreFoldersToBeginWith) {
  const HfCase job;
  const std::string hash = job.trained("run").weights_sha256;
  EXPECT_EQ(job.at_rest("again", {"model.hf=" + job.output("run") + "/checkpoint-8"}).weights_sha256, hash);
}

TEST(HfRun, AnExportedFolderHoldsTheModel) {
  const HfCase job;
  const std::string hash = job.trained("run").weights_sha256;
  const std::string one = job.exported("run", "hf");
  const std::string many = job.exported("run", "hf", {"--shard-size", "4kB"});
  EXPECT_TRUE(fs::exists(one + "/model.safetensors"));
  EXPECT_TRUE(fs::exists(many + "/model.safetensors.index.json"));
  EXPECT_FALSE(fs::exists(many + "/model.safetensors"));
  EXPECT_EQ(read_file(one + "/tokenizer.json"), read_file(job.model().path("tokenizer.json")));
  EXPECT_EQ(job.at_rest("one", {"model.hf=" + one}).weights_sha256, hash);
  EXPECT_EQ(job.at_rest("many", {"model.hf=" + many}).weights_sha256, hash);
  const Ended twice = job.lockstep({"export", job.output("run"), "--to", "hf", "--out", one});
  EXPECT_NE(twice.code, 0);
  EXPECT_NE(twice.err.find("not an empty folder"), std::string::npos) << twice.err;
  const std::string narrow = job.exported("run", "hf", {"--dtype", "bfloat16"});
  EXPECT_EQ(SafetensorsReader(narrow + "/model.safetensors").tensors()[0].tensor.dtype, DType::kBF16);
  EXPECT_NE(read_file(narrow + "/config.json").find("\"torch_dtype\": \"bfloat16\""), std::string::npos);
}

TEST(HfRun, LorasMatricesGoOutAsAnAdapterOrMerged) {
  const HfCase job;
  const RunSummary run =
      job.trained("run", {"train.lora.rank=4", "train.lora.modules=[q_proj, v_proj, up_proj]"});
  const Ended refused =
      job.lockstep({"export", job.output("run"), "--to", "hf", "--out", job.folder().path("no")});
  EXPECT_NE(refused.err.find("--merge"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(job.folder().path("no")));

  const std::string adapter = job.exported("run", "peft");
  EXPECT_EQ(job.at_rest("adapted", {"train.lora.from=" + adapter}).weights_sha256, run.weights_sha256);
  EXPECT_NEAR(job.loss("adapted"), job.loss("run"), 1e-12);

  const std::string merged = job.exported("run", "hf", {"--merge"});
  job.at_rest("merged", {"model.hf=" + merged});
  EXPECT_NEAR(job.loss("merged"), job.loss("run"), 1e-5);
  job.at_rest("base", {});
  EXPECT_GT(std::abs(job.loss("base") - job.loss("run")), 1e-3);
}

TEST(HfRun, LoraBeginsAsTheModelItself) {
  const HfCase job;
  job.at_rest("base", {});
  job.at_rest("lora", {"train.lora.rank=4"});
  EXPECT_EQ(job.loss("base"), job.loss("lora"));
  const SafetensorsReader kept(job.output("lora") + "/checkpoint-1/trained.safetensors");
  const TensorEntry& a = kept.at("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(a.tensor.shape, (Shape{4, 16}));
  std::vector<float> values(64);
  kept.read(a, std::as_writable_bytes(std::span(values)));
  for (const float value : values) EXPECT_LE(std::abs(value), 0.25f);
  EXPECT_FALSE(kept.contains("base_model.model.lm_head.lora_A.weight"));
}

TEST(HfRun, WhatCannotBeIsRefused) {
  const HfCase job;
  const auto expect = [&](const std::vector<std::string>& settings, const char* part) {
    const Ended ended = job.train("refused", settings);
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
  };
  expect({"model.hf=/nowhere"}, "model.hf: /nowhere: there is no such folder");
  expect({"model.layers=3"}, "model.layers does not go with model.hf");
  expect({"model.seq=17"}, "is more than the 16 positions");
  expect({"model.classes=3"}, "model.classes is for heads that classify");
  expect({"train.freeze=[\"nobody.*\"]"}, "which fits no parameter of this model");
  expect({"train.freeze=[\"*\"]"}, "nothing is left to train");
  expect({"train.freeze=[lm_head.*]", "train.train_only=[lm_head.*]"}, "both say what is trained");
  expect({"train.lora.rank=4", "train.freeze=[lm_head.*]"}, "remove train.freeze");
  expect({"train.lora.rank=4", "train.lora.modules=[q_prj]"}, "there are down_proj, gate_proj");
  expect({"train.lora.alpha=4"}, "train.lora.rank: 16");
  expect({"train.lora.from=" + job.model().path()}, "adapter_config.json");
}

}  // namespace
}  // namespace lockstep

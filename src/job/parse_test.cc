// Job files that are right: what they mean, where each value came from, and that printing loses nothing.
#include "job/parse.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "job/print.h"
#include "job/resolve.h"
#include "job/templates.h"
#include "job/workers.h"

namespace lockstep {
namespace {

constexpr std::string_view kSmall = R"(name: small
model: {family: gpt, layers: 2}
data: {train: {format: synthetic}}
train:
  steps: 100
  global_batch: 64
  microbatch: 8
  lr: {base: 1e-3, warmup: 5%}
)";

JobSpec parse(std::string_view text, std::vector<std::string> overrides = {}) {
  return parse_job(text, "job.yaml", overrides);
}

std::string error_of(std::string_view text, std::vector<std::string> overrides = {}) {
  try {
    resolve(parse(text, std::move(overrides)));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string with(std::string_view line) { return std::string(kSmall) + std::string(line) + "\n"; }

// The example of docs/design.md, with the parts that it leaves open.
TEST(Parse, TheDesignsExample) {
  const JobSpec spec = parse(R"(
name: fraud
model: {family: tabular, dim: 16}
data: {train: {format: csv, files: "tx/*.csv", label: is_fraud}, eval: {files: "held/*.csv"}, seed: 7}
train:
  steps: 2000
  global_batch: 1024                     # the batch that the optimizer sees, whatever the cluster
  microbatch: 128
  optimizer: {name: adamw, weight_decay: 0.01}
  lr: {base: 1e-3, base_batch: 128, scaling: sqrt, warmup: 200, decay: linear}
  precision: fp32                        # or bf16
  clip_norm: 1.0
  guard: {non_finite: skip, max_skips: 3}
strategy: {workers: auto, threads: auto, leaves: auto, zero: 0, pipeline: 1, tensor: 1, reduce: {via: direct}}
workerPoolSpecs:
  - {machineSpec: {machineType: local}, replicaCount: 4}
checkpoint: {every: 500, keep: 2}
output: runs/fraud
)");
  EXPECT_EQ(spec.model.family->name, "tabular");
  EXPECT_EQ(spec.data.train.files, std::vector<std::string>{"tx/*.csv"});
  EXPECT_EQ(spec.data.eval.format, DataFormat::kCsv);
  EXPECT_EQ(spec.data.eval.label, "is_fraud");
  EXPECT_EQ(spec.train.lr.base, 1e-3);
  EXPECT_EQ(spec.train.lr.warmup, (StepSpan{StepSpan::Unit::kSteps, 200}));
  EXPECT_EQ(spec.train.guard.non_finite, NonFinitePolicy::kSkip);
  EXPECT_FALSE(spec.strategy.workers.has_value());
  ASSERT_EQ(spec.workerPoolSpecs.size(), 1u);
  EXPECT_EQ(spec.workerPoolSpecs[0].replicaCount, 4);
  EXPECT_EQ(spec.where("train.microbatch"), "job.yaml:8");
  EXPECT_EQ(spec.origins.at("train.optimizer.eps").comment(), "default");
  EXPECT_EQ(spec.origins.at("data.eval.label").comment(), "as data.train.label");
}

TEST(Parse, WhatIsPrintedReadsBackTheSame) {
  for (const JobTemplate& one : job_templates()) {
    const JobSpec spec = parse(one.text);
    const std::string printed = to_yaml(spec);
    JobSpec again = parse(printed);
    if (spec.model.hf.empty()) {
      EXPECT_NO_THROW(resolve(again)) << printed;
    }
    again.origins = spec.origins;  // lines differ, the values must not
    EXPECT_EQ(to_yaml(again), printed);
  }
  const std::string odd = with(
      "output: \"a: b # \\\"c\\\"\"\ncheckpoint: {dir: \"007\", every: 10 samples}\nstrategy: {memory: "
      "1.5GiB}");
  const JobSpec spec = parse(odd);
  const JobSpec again = parse(to_yaml(spec));
  EXPECT_EQ(again.output, "a: b # \"c\"");
  EXPECT_EQ(again.checkpoint.dir, "007");
  EXPECT_EQ(again.checkpoint.every, (StepSpan{StepSpan::Unit::kSamples, 10}));
  EXPECT_EQ(again.strategy.memory, int64_t{3} << 29);
}

TEST(Parse, WhatIsReadAndHow) {
  const JobSpec spec = parse(R"(name: table
model: {family: tabular}
data:
  train:
    format: csv
    files: [a.csv, b.csv]
    weights: [0.7, 0.3]
    transforms:
      - {name: clip, columns: [amount, "1e3"], high: 1e4}
      - {name: clip, columns: hour, low: 0}
  errors: {policy: skip, limit: 0.01}
  shuffle: global
  readers: 3
  memory: 64MiB
train: {steps: 10, global_batch: 64, microbatch: 8, lr: {base: 1e-3}}
)");
  ASSERT_EQ(spec.data.train.transforms.size(), 2);
  EXPECT_EQ(spec.data.train.transforms[0].settings[0].second, (std::vector<std::string>{"amount", "1e3"}));
  EXPECT_EQ(spec.data.train.weights, (std::vector<double>{0.7, 0.3}));
  EXPECT_EQ(spec.data.errors.policy, DataErrors::kSkip);
  const JobSpec again = parse(to_yaml(spec));
  EXPECT_EQ(again.data.train.transforms, spec.data.train.transforms);
  EXPECT_EQ(again.data.train.weights, spec.data.train.weights);
  EXPECT_EQ(again.data.memory, int64_t{64} << 20);
  EXPECT_EQ(again.data.readers, 3);
  EXPECT_EQ(again.data.shuffle, DataShuffle::kGlobal);
}

TEST(Parse, ShuffleTakesTrueAndFalse) {
  EXPECT_EQ(parse(kSmall).data.shuffle, DataShuffle::kBlock);
  EXPECT_EQ(parse(kSmall, {"data.shuffle=true"}).data.shuffle, DataShuffle::kBlock);
  EXPECT_EQ(parse(kSmall, {"data.shuffle=false"}).data.shuffle, DataShuffle::kNone);
  EXPECT_NE(error_of(kSmall, {"data.shuffle=\"true\""}), "");
}

TEST(Parse, OverridesAreTypedAndLastOnesWin) {
  const JobSpec spec =
      parse(kSmall, {"train.lr.base=2e-3", "train.lr.base=3e-3", "model={layers: 3, dim: 64}", "name=1"});
  EXPECT_EQ(spec.train.lr.base, 3e-3);
  EXPECT_EQ(spec.model.layers, 3);
  EXPECT_EQ(spec.model.dim, 64);
  EXPECT_EQ(spec.name, "1");
  EXPECT_EQ(spec.where("model.layers"), "--set");
  EXPECT_EQ(parse(kSmall, {"model.layers="}).model.layers, 12) << "an empty value goes back to the default";
  EXPECT_EQ(parse(kSmall, {"learning_rate=0.5"}).train.lr.base, 0.5);
}

// Steps on the command line replace epochs in the file, and the other way round; both in one place do not.
TEST(Parse, ALengthOnTheCommandLineReplacesTheFiles) {
  const std::string epochs = R"(name: long
model: {family: gpt}
data: {train: {format: synthetic}}
train: {epochs: 3, global_batch: 64, microbatch: 8, lr: {base: 1e-3}}
)";
  const JobSpec steps = parse(epochs, {"train.steps=12"});
  EXPECT_EQ(steps.train.steps, 12);
  EXPECT_FALSE(steps.train.epochs);
  EXPECT_EQ(steps.notes,
            std::vector<std::string>{"job.yaml:4: train.epochs 3 is replaced by --set train.steps"});
  const JobSpec other = parse(kSmall, {"train.epochs=2"});
  EXPECT_EQ(other.train.epochs, 2);
  EXPECT_FALSE(other.train.steps);
  EXPECT_NE(error_of(kSmall, {"train.epochs=2", "train.steps=3"}).find("keep one of them"),
            std::string::npos);
}

TEST(Parse, AnEmptySectionOnTheCommandLineGoesBackToItsDefaults) {
  const std::string eval = R"(name: eval
model: {family: gpt}
data: {train: {format: synthetic}, eval: {samples: 8, format: synthetic}}
train: {steps: 3, global_batch: 64, microbatch: 8, lr: {base: 1e-3}}
)";
  EXPECT_TRUE(parse(eval).data.eval.format);
  EXPECT_FALSE(parse(eval, {"data.eval="}).data.eval.format);
  EXPECT_EQ(parse(eval, {"data.eval=", "data.eval.samples=9"}).data.eval.samples, 9);
}

TEST(Parse, OverrideErrorsCiteTheOption) {
  EXPECT_EQ(error_of(kSmall, {"train.lr.base=fast"}),
            "--set: train.lr.base is 'fast'; write a number at least 0, for example 1e-3");
  EXPECT_EQ(error_of(kSmall, {"train.lr.bse=1"}),
            "--set: unknown key bse in train.lr; did you mean train.lr.base?");
  EXPECT_EQ(error_of(kSmall, {"train.steps"}),
            "--set train.steps: there is no value; write key=value, for example train.lr.base=1e-3");
  EXPECT_EQ(error_of(kSmall, {"train.microbatch=7"}),
            "--set: train.microbatch 7 does not divide global_batch 64; use 4 or 8");
  EXPECT_NE(error_of(kSmall, {"workerPoolSpecs[0].replicaCount=2"}).find("not one of the job's 0 pools"),
            std::string::npos);
}

TEST(Parse, TrainerKeysAreUnderstoodAndReported) {
  const JobSpec spec = parse(R"(
model: {family: encoder}
data: {train: {format: synthetic}}
output_dir: out
per_device_train_batch_size: 16
gradient_accumulation_steps: 4
learning_rate: 5e-5
num_train_epochs: 3.0
max_steps: -1
warmup_ratio: 0.06
lr_scheduler_type: constant_with_warmup
optim: adamw_torch_fused
adam_beta2: 0.98
max_grad_norm: 1.0
bf16: true
gradient_checkpointing: true
save_steps: 500
logging_steps: 10
)");
  EXPECT_EQ(spec.train.microbatch, 16);
  EXPECT_EQ(spec.train.global_batch, 64);
  EXPECT_EQ(spec.train.epochs, 3.0);
  EXPECT_FALSE(spec.train.steps.has_value());
  EXPECT_EQ(spec.train.lr.warmup, (StepSpan{StepSpan::Unit::kFraction, 0.06}));
  EXPECT_EQ(spec.train.lr.decay, LrDecay::kConstant);
  EXPECT_EQ(spec.train.optimizer.betas, (std::array<double, 2>{0.9, 0.98}));
  EXPECT_EQ(spec.train.precision, Precision::kBf16);
  EXPECT_EQ(spec.train.recompute, Recompute::kBlock);
  EXPECT_EQ(spec.output, "out");
  EXPECT_EQ(spec.origins.at("train.lr.base").comment(), "job.yaml:7, as learning_rate");
  const auto noted = [&](std::string_view text) {
    return std::find(spec.notes.begin(), spec.notes.end(), text) != spec.notes.end();
  };
  EXPECT_TRUE(noted(
      "job.yaml:6: understood gradient_accumulation_steps 4 as train.global_batch: 64 (16 x 4 x 1 worker)"));
  EXPECT_TRUE(noted("job.yaml:7: understood learning_rate (Hugging Face) as train.lr.base: 5e-5"));
  EXPECT_TRUE(noted("job.yaml:18: logging_steps (Hugging Face) has no effect here"));
}

TEST(Parse, DeepSpeedJsonIsUnderstood) {
  const JobSpec spec = parse(R"({
  "model": {"family": "gpt"}, "data": {"train": {"format": "synthetic"}},
  "train_batch_size": 256, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": "auto",
  "optimizer": {"type": "Adam", "params": {"lr": 3e-4, "betas": [0.8, 0.99], "eps": 1e-7}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 20, "total_num_steps": 400}},
  "bf16": {"enabled": true}, "gradient_clipping": 0.5,
  "zero_optimization": {"stage": 2, "overlap_comm": true}
})");
  EXPECT_EQ(spec.train.global_batch, 256);
  EXPECT_EQ(spec.train.optimizer.name, OptimizerName::kAdam);
  EXPECT_EQ(spec.train.optimizer.betas[0], 0.8);
  EXPECT_EQ(spec.train.steps, 400);
  EXPECT_EQ(spec.train.lr.decay, LrDecay::kLinear);
  EXPECT_EQ(spec.train.clip_norm, 0.5);
  EXPECT_EQ(spec.strategy.zero, 2);
}

TEST(Parse, VertexFilesInTheirThreeShapes) {
  const std::string bare = with(
      "workerPoolSpecs:\n  - machineSpec: {machineType: n1, acceleratorType: NVIDIA_L4, acceleratorCount: "
      "1}\n"
      "    replicaCount: \"1\"\n    containerSpec: {imageUri: x}\n  - {}\n  - {replicaCount: 3}");
  const std::string wrapped =
      with("displayName: d\njobSpec:\n  workerPoolSpecs: [{replicaCount: 1}, {replicaCount: 7}]");
  const std::string snake = with("worker_pool_specs: [{machine_spec: {machine_type: n2}, replica_count: 2}]");
  const JobSpec first = parse(bare);
  ASSERT_EQ(first.workerPoolSpecs.size(), 3u);
  EXPECT_EQ(first.workerPoolSpecs[0].machineSpec.acceleratorType, "NVIDIA_L4");
  EXPECT_EQ(first.workerPoolSpecs[1].replicaCount, 0) << "an empty pool only keeps a position";
  EXPECT_EQ(first.workerPoolSpecs[2].replicaCount, 3);
  EXPECT_EQ(parse(wrapped).workerPoolSpecs[1].replicaCount, 7);
  EXPECT_EQ(parse(snake).workerPoolSpecs[0].machineSpec.machineType, "n2");
  EXPECT_EQ(parse(to_yaml(first)).workerPoolSpecs[2].replicaCount, 3);
  EXPECT_EQ(wanted_workers(parse(wrapped)), 8);
  EXPECT_EQ(wanted_workers(parse(wrapped, {"strategy.workers=1"})), 1);
  EXPECT_EQ(wanted_workers(parse(snake)), 2);
  EXPECT_EQ(wanted_workers(parse(kSmall)), std::nullopt);
  EXPECT_EQ(error_of(wrapped), "");
  EXPECT_EQ(error_of(bare, {"strategy.workers=1"}), "");
}

TEST(Parse, TheThirdPoolIsReductionServers) {
  const std::string pools =
      with("workerPoolSpecs: [{replicaCount: 1}, {replicaCount: 3}, {replicaCount: 2}]");
  const auto reduce = [](const JobSpec& spec) { return spec.strategy.reduce; };
  const JobSpec spec = parse(pools);
  EXPECT_EQ(reduce(spec).via, ReduceVia::kServer);
  EXPECT_EQ(reduce(spec).servers, 2);
  EXPECT_EQ(reduce(parse(to_yaml(spec))).servers, 2);
  EXPECT_EQ(wanted_workers(spec), 4) << "servers are no workers";
  EXPECT_EQ(reduce(parse(pools, {"strategy.reduce.servers=5", "strategy.reduce.via=server"})).servers, 5);
  EXPECT_EQ(reduce(parse(kSmall, {"strategy.reduce.via=server"})).servers, 1);
  for (const char* passed_over : {"strategy.workers=2", "strategy.reduce.via=direct"}) {
    const JobSpec direct = parse(pools, {passed_over});
    EXPECT_EQ(reduce(direct).via, ReduceVia::kDirect) << passed_over;
    ASSERT_FALSE(direct.notes.empty()) << passed_over;
    EXPECT_NE(direct.notes.back().find("2 reduction servers, which are not used"), std::string::npos);
  }
  EXPECT_NE(error_of(kSmall, {"strategy.reduce.servers=2"}).find("needs strategy.reduce.via: server"),
            std::string::npos);
  for (const char* other : {"strategy.zero=1", "strategy.reduce.order=fast"})
    EXPECT_NE(error_of(pools, {other}).find("does not go with strategy.reduce.via server"), std::string::npos)
        << other;
}

constexpr std::string_view kTable = R"(model: {family: tabular}
data: {train: {format: csv, files: t.csv, label: y}}
train: {steps: 10, global_batch: 8, microbatch: 8, lr: {base: 1e-3}}
)";

TEST(Parse, TasksAndClassWeights) {
  EXPECT_EQ(parse(kTable).model.task, LabelTask::kAuto);
  EXPECT_EQ(parse(kTable, {"model.task=regression"}).model.task, LabelTask::kRegression);
  EXPECT_EQ(error_of(kTable, {"model.task=cluster"}),
            "--set: model.task is 'cluster', which is not one of its choices; write auto, binary, "
            "classification, regression");
  EXPECT_TRUE(parse(kTable).train.class_weights.empty());
  EXPECT_TRUE(parse(kTable, {"train.class_weights=balanced"}).train.class_weights.balanced);
  const JobSpec given = parse(kTable, {"train.class_weights={0: 1, 'a: b': 2.5, true: 0}"});
  const ClassWeightsSpec expected{false, {{"0", 1.0}, {"a: b", 2.5}, {"true", 0.0}}};
  EXPECT_EQ(given.train.class_weights, expected);
  EXPECT_EQ(parse(to_yaml(given)).train.class_weights, expected) << to_yaml(given);
  for (const char* wrong : {"heavy", "[1, 2]", "{}", "3"})
    EXPECT_NE(error_of(kTable, {std::string("train.class_weights=") + wrong})
                  .find("write balanced, or a map from labels to their weights, each at least 0, for example "
                        "{0: 1, 1: 20}"),
              std::string::npos)
        << wrong;
  EXPECT_NE(error_of(kTable, {"train.class_weights={a: -1}"}).find("must be at least 0"), std::string::npos);
  EXPECT_NE(error_of(kSmall, {"train.class_weights=balanced"}).find("does not go with model.family gpt"),
            std::string::npos);
}

TEST(Parse, TheSameThingUnderTwoNamesIsRefused) {
  EXPECT_EQ(error_of(with("learning_rate: 1e-4")),
            "job.yaml:9: learning_rate and train.lr.base (line 8) say the same thing; keep one of them");
  EXPECT_EQ(error_of(with("gradient_accumulation_steps: 4")),
            "job.yaml:6: the global batch is 64, but 8 x 4 x 1 worker = 32; remove "
            "gradient_accumulation_steps, or write 32");
}

TEST(Parse, InitFromIsAPathOrASection) {
  const auto from = [&](std::string_view value, std::vector<std::string> overrides = {}) {
    std::string text(kSmall);
    text.insert(text.find("  steps: 100"), fmt::format("  init_from: {}\n", value));
    return parse(text, std::move(overrides)).train.init_from;
  };
  EXPECT_EQ(from("runs/base").run, "runs/base");
  const InitFromSpec section = from("{run: runs/base, only: [\"h.*\", wte.weight], except: [\"h.1.*\"]}");
  EXPECT_EQ(section.run, "runs/base");
  EXPECT_EQ(section.only, (std::vector<std::string>{"h.*", "wte.weight"}));
  EXPECT_EQ(section.except, std::vector<std::string>{"h.1.*"});
  EXPECT_EQ(from("runs/base", {"train.init_from=runs/other"}).run, "runs/other");
  EXPECT_EQ(from("runs/base", {"train.init_from="}).run, "");
  // What is printed reads back.
  const JobSpec spec =
      parse(std::string(kSmall), {"train.init_from=runs/base", "train.init_from.only=[h.*]"});
  EXPECT_EQ(parse(to_yaml(spec)).train.init_from.run, "runs/base");
  EXPECT_EQ(parse(to_yaml(spec)).train.init_from.only, std::vector<std::string>{"h.*"});
}

}  // namespace
}  // namespace lockstep

#include "train/guard/diagnose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "train/guard/lr_advice.h"

namespace lockstep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// A run of 1000 steps at a rate and with settings that nobody would blame; tests change what they are about.
TroubleFacts ordinary() {
  TroubleFacts facts;
  facts.numbers = {400, kNan, kNan, 256};
  facts.trouble = Trouble::kNonFiniteLoss;
  facts.microbatches = 8;
  facts.optimizer = "adamw";
  facts.clip_norm = 1.0;
  facts.schedule.base = 1e-4;
  facts.schedule.base_batch = 32;
  facts.schedule.global_batch = 256;
  facts.schedule.scaling = LrScaling::kSqrt;
  facts.schedule.total_steps = 1000;
  facts.schedule.warmup_steps = 100;
  facts.lr = facts.peak_lr = 2.83e-4;
  return facts;
}

const Cause* find(const Diagnosis& diagnosis, const std::string& name) {
  const auto found = std::find_if(diagnosis.causes.begin(), diagnosis.causes.end(),
                                  [&](const Cause& cause) { return cause.name == name; });
  return found == diagnosis.causes.end() ? nullptr : &*found;
}

const Cause& first(const Diagnosis& diagnosis) { return diagnosis.causes.at(0); }

bool mentions(const Cause& cause, const std::string& text) {
  return std::any_of(cause.evidence.begin(), cause.evidence.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST(Diagnose, BlamesARateFarAboveTheUsual) {
  TroubleFacts facts = ordinary();
  facts.schedule.base = 1.0;
  facts.schedule.scaling = LrScaling::kLinear;
  facts.lr = facts.peak_lr = 8.0;
  const Diagnosis diagnosis = diagnose(facts);
  EXPECT_EQ(first(diagnosis).name, "learning rate too high");
  EXPECT_TRUE(mentions(first(diagnosis), "8 at this step is 8e3 times the upper end"));
  EXPECT_TRUE(mentions(first(diagnosis), "2.8 times what the sqrt rule for adamw makes of 1 at batch 32"));
  EXPECT_EQ(first(diagnosis).sets,
            (std::vector<std::string>{"train.lr.scaling=sqrt", "train.lr.base=3.5e-4"}));
}

TEST(Diagnose, BlamesLinearScalingOfAnAdaptiveOptimizer) {
  TroubleFacts facts = ordinary();
  facts.schedule.scaling = LrScaling::kLinear;
  facts.lr = facts.peak_lr = 8e-4;
  const Cause cause = first(diagnose(facts));
  EXPECT_EQ(cause.name, "learning rate too high");
  EXPECT_TRUE(mentions(cause, "the peak 8e-4 is 2.8 times"));
  EXPECT_EQ(cause.sets, std::vector<std::string>{"train.lr.scaling=sqrt"});
}

TEST(Diagnose, LinearScalingIsRightForSgd) {
  TroubleFacts facts = ordinary();
  facts.optimizer = "sgd";
  facts.schedule.scaling = LrScaling::kLinear;
  facts.schedule.base = 0.0125;
  facts.lr = facts.peak_lr = 0.1;
  const Diagnosis diagnosis = diagnose(facts);
  EXPECT_EQ(first(diagnosis).points, 5);  // nothing but that it is common
  EXPECT_EQ(first(diagnosis).sets, std::vector<std::string>{"train.lr.base=4.1e-3"});
}

TEST(Diagnose, SaysHowTheLossRose) {
  TroubleFacts facts = ordinary();
  facts.losses = {2.0, 0.5, 1.0, 4.0};
  const Diagnosis diagnosis = diagnose(facts);
  EXPECT_TRUE(mentions(first(diagnosis), "the loss had risen from 0.5 to 4 in the 3 steps before"));
}

TEST(Diagnose, BlamesTheUpdateBeforeForABadParameter) {
  TroubleFacts facts = ordinary();
  facts.inspection.parameter = "classifier.weight";
  facts.inspection.parameter_was_bad = true;
  const Diagnosis diagnosis = diagnose(facts);
  EXPECT_EQ(first(diagnosis).name, "learning rate too high");
  EXPECT_TRUE(mentions(first(diagnosis), "classifier.weight was not finite before this step"));
}

TEST(Diagnose, BlamesAMissingOrShortWarmup) {
  TroubleFacts facts = ordinary();
  facts.numbers.step = 3;
  facts.schedule.warmup_steps = 0;
  const Diagnosis missing = diagnose(facts);
  EXPECT_EQ(first(missing).name, "warm-up missing");
  EXPECT_EQ(first(missing).sets, std::vector<std::string>{"train.lr.warmup=10%"});
  facts.schedule.warmup_steps = 10;
  EXPECT_EQ(first(diagnose(facts)).name, "warm-up too short");
  facts.numbers.step = 900;  // long after
  EXPECT_EQ(find(diagnose(facts), "warm-up too short"), nullptr);
}

TEST(Diagnose, WarmupFollowsBeta2InALongRun) {
  TroubleFacts facts = ordinary();
  facts.schedule.total_steps = 100'000;
  EXPECT_EQ(warmup_advice(facts).steps, 2000);
  facts.beta2 = 0.95;
  EXPECT_EQ(warmup_advice(facts).steps, 40);
  facts.beta2 = 0;
  EXPECT_EQ(warmup_advice(facts).steps, 2000);
}

TEST(Diagnose, NamesTheBadRecordAndNothingElse) {
  TroubleFacts facts = ordinary();
  facts.bf16 = true;
  facts.inspection.microbatch = 3;
  facts.inspection.bad_input = BadInput{"dense", 5, "tx/train-00002.csv:418", "nan"};
  const Diagnosis diagnosis = diagnose(facts);
  ASSERT_EQ(diagnosis.causes.size(), 1u);
  EXPECT_EQ(first(diagnosis).name, "bad input");
  EXPECT_TRUE(mentions(first(diagnosis), "column dense of tx/train-00002.csv:418 is nan"));
}

TEST(Diagnose, NamesMaskedLabels) {
  TroubleFacts facts = ordinary();
  facts.trouble = Trouble::kNothingCounted;
  const Diagnosis diagnosis = diagnose(facts);
  ASSERT_EQ(diagnosis.causes.size(), 1u);
  EXPECT_EQ(first(diagnosis).name, "all labels masked");
  EXPECT_EQ(diagnosis.headline, "step 400: the loss counts nothing, all labels are masked");
}

TEST(Diagnose, BlamesBf16OnlyWhereFp32IsFinite) {
  TroubleFacts facts = ordinary();
  facts.bf16 = true;
  facts.inspection.microbatch = 0;
  facts.inspection.fp32_finite = true;
  facts.inspection.first = NonFiniteValue{"matmul_3", "matmul", 5, kInf, false, 3e38, "gelu_1"};
  const Diagnosis diagnosis = diagnose(facts);
  EXPECT_EQ(first(diagnosis).name, "bf16 overflow or rounding");
  EXPECT_EQ(first(diagnosis).sets, std::vector<std::string>{"train.precision=fp32"});
  facts.inspection.fp32_finite = false;
  EXPECT_EQ(find(diagnose(facts), "bf16 overflow or rounding"), nullptr);
  facts.inspection.fp32_finite.reset();
  EXPECT_EQ(find(diagnose(facts), "bf16 overflow or rounding")->points, 10);
}

TEST(Diagnose, TellsANormThatOverflowsFromABadGradient) {
  TroubleFacts facts = ordinary();
  facts.trouble = Trouble::kNonFiniteGradient;
  facts.inspection.largest_gradient = 5e19;
  EXPECT_EQ(first(diagnose(facts)).name, "gradient norm overflow");
  facts.inspection.bad_sum_of = "wte.weight";
  EXPECT_EQ(find(diagnose(facts), "gradient norm overflow"), nullptr);
}

TEST(Diagnose, BlamesMissingClippingByTheNormsSeen) {
  TroubleFacts facts = ordinary();
  facts.clip_norm = 0;
  EXPECT_EQ(find(diagnose(facts), "no clipping")->points, 8);
  facts.grad_norms = {1, 1, 1, 20};
  const Diagnosis diagnosis = diagnose(facts);
  EXPECT_EQ(first(diagnosis).name, "no clipping");
  EXPECT_EQ(first(diagnosis).sets, std::vector<std::string>{"train.clip_norm=1.0"});
}

TEST(Diagnose, BlamesLargeActivations) {
  TroubleFacts facts = ordinary();
  facts.inspection.microbatch = 0;
  facts.inspection.first = NonFiniteValue{"attention_2", "attention", 5, kNan, false, 3e9, "matmul_7"};
  const Diagnosis diagnosis = diagnose(facts);
  EXPECT_EQ(first(diagnosis).name, "exploding activations");
  EXPECT_TRUE(mentions(first(diagnosis), "before attention_2 turned nan, matmul_7 already held 3e9"));
  EXPECT_TRUE(mentions(first(diagnosis), "attention saturates"));
}

TEST(Diagnose, BlamesUnusualSamplesForASpike) {
  TroubleFacts facts = ordinary();
  facts.trouble = Trouble::kSpikeLoss;
  facts.numbers = {400, 20, 3, 256};
  facts.inspection.microbatch = 2;
  facts.inspection.losses = {2, 3, 90, 2};
  facts.inspection.samples = {"a.csv:1", "a.csv:2", "a.csv:3", "a.csv:4", "a.csv:5"};
  const Diagnosis diagnosis = diagnose(facts);
  EXPECT_EQ(first(diagnosis).name, "unusual samples");
  EXPECT_TRUE(mentions(first(diagnosis), "microbatch 2 has a loss of 90, 45 times the median of the 4, 2"));
  EXPECT_EQ(diagnosis.findings.at(1), "samples a.csv:1, a.csv:2, a.csv:3, a.csv:4 and 1 more");
}

TEST(Diagnose, TextAndJsonSayTheSame) {
  TroubleFacts facts = ordinary();
  facts.numbers.step = 2;
  facts.trouble = Trouble::kNonFiniteGradient;
  facts.numbers.loss = 2.5;
  facts.schedule.warmup_steps = 0;
  facts.inspection.microbatch = 1;
  facts.inspection.samples = {"a.csv:7"};
  facts.inspection.parameter = "encoder.layer.1.output.dense.weight";
  facts.inspection.first = NonFiniteValue{"matmul_9", "matmul", 12, kNan, true, 4.0, "x"};
  const Diagnosis diagnosis = diagnose(facts);
  const std::string text = to_text(diagnosis);
  EXPECT_TRUE(
      text.starts_with("step 2: the gradient norm is nan at a loss of 2.5\n"
                       "  microbatch 1 of 8, counted from 0\n"
                       "  sample a.csv:7\n"
                       "  first bad value: matmul_9 = nan (matmul), element 12, in backward\n"
                       "  nearest parameter: encoder.layer.1.output.dense.weight\n"
                       "likely causes, the likeliest first:\n"
                       "  1. warm-up missing\n"))
      << text;
  EXPECT_NE(text.find("          --set train.lr.warmup=10%\n"), std::string::npos) << text;
  const nlohmann::json json = nlohmann::json::parse(to_json(facts, diagnosis).dump());
  EXPECT_EQ(json.at("step"), 2);
  EXPECT_EQ(json.at("trouble"), "non_finite_gradient");
  EXPECT_EQ(json.at("grad_norm"), "nan");
  EXPECT_EQ(json.at("microbatch"), 1);
  EXPECT_EQ(json.at("first_bad_value").at("op"), "matmul");
  EXPECT_EQ(json.at("causes").at(0).at("set").at(0), "train.lr.warmup=10%");
}

}  // namespace
}  // namespace lockstep

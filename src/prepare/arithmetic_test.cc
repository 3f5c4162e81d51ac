#include "prepare/arithmetic.h"

#include <gtest/gtest.h>

#include "job/parse.h"
#include "model/family.h"

namespace lockstep {
namespace {

JobSpec job(const std::string& family, const std::string& precision) {
  const std::string data = "data: {train: {format: synthetic, samples: 64}}\n";
  const std::string train = "train: {steps: 2, global_batch: 4, microbatch: 4, lr: {base: 1e-3}}\n";
  const std::vector<std::string> settings = {"train.precision=" + precision};
  return parse_job("model: {family: " + family + "}\n" + data + train, "job.yaml", settings);
}

std::string measured(const std::string& family, const std::string& precision, int threads) {
  return measured_arithmetic(job(family, precision), *make_cpu_backend(threads));
}

TEST(Arithmetic, IsTheSameForAnyNumberOfThreads) {
  for (const std::string_view family : family_names()) {
    const std::string one = measured(std::string(family), "fp32", 1);
    EXPECT_TRUE(one.starts_with("fp32 ")) << one;
    EXPECT_EQ(one.size(), 21u) << one;
    EXPECT_EQ(measured(std::string(family), "fp32", 3), one) << family;
  }
}

TEST(Arithmetic, IsThatOfThePrecision) {
  const std::string single = measured("gpt", "fp32", 1), half = measured("gpt", "bf16", 1);
  EXPECT_TRUE(half.starts_with("bf16 ")) << half;
  EXPECT_NE(single.substr(5), half.substr(5));
}

// A device in whose memory the host cannot look is named by its architecture.
TEST(Arithmetic, IsNotMeasuredOnDevices) {
  EXPECT_EQ(measured_arithmetic(job("gpt", "fp32"), *make_null_backend()), "");
}

}  // namespace
}  // namespace lockstep

#include "observe/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/test_folder.h"
#include "observe/run_statistics.h"

namespace lockstep {
namespace {

RunSummary example() {
  RunSummary summary;
  summary.status = "done";
  summary.name = "fraud";
  summary.started = utc_time(0);
  summary.steps = 2000;
  summary.final_loss = 0.1;
  summary.weights_sha256 = "ab12";
  summary.step_time_ms = {12.5, 14.25};
  summary.breakdown = {0.75, 0, 0.125, 0.125, 0};
  summary.best_eval.emplace();
  summary.best_eval->step = 1500;
  summary.best_eval->auc = 0.9375;
  summary.network_bytes = int64_t{1} << 60;
  summary.start = {{"plan", 250.5, 1}, {"first step", 120, 1}};
  summary.beside_start = {{"kernels compiled", 400, 7}};
  summary.device = {
      .samples = 3, .mean = {.utilization = 0.5}, .peak = {.utilization = 0.75, .power_w = 600}};
  summary.warnings = {"the learning rate is 0", "a \"quoted\" one"};
  return summary;
}

TEST(Summary, IsReadBackAsWritten) {
  const TestFolder folder;
  write_summary(folder.path("summary.json"), example());
  EXPECT_EQ(read_summary(folder.path("summary.json")), example());
  // Nothing else is left behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Summary, HasTheFieldsThatScriptsRead) {
  const TestFolder folder;
  write_summary(folder.path("summary.json"), example());
  const nlohmann::json object = nlohmann::json::parse(read_file(folder.path("summary.json")));
  for (const char* name :
       {"status", "steps", "final_loss", "weights_sha256", "identity_sha256", "workers", "threads_per_worker",
        "samples_per_second", "tokens_per_second", "step_time_ms", "time_to_first_step_s", "breakdown",
        "peak_memory_bytes", "planned_memory_bytes", "network_bytes", "skipped_steps", "restarts"})
    EXPECT_TRUE(object.contains(name)) << name;
  EXPECT_EQ(object["step_time_ms"]["p95"], 14.25);
  EXPECT_EQ(object["breakdown"]["input_wait"], 0.125);
  EXPECT_EQ(object["best_eval"]["auc"], 0.9375);
  EXPECT_EQ(object["start"][0]["name"], "plan");
  EXPECT_EQ(object["beside_start"][0]["times"], 7);
  EXPECT_EQ(object["device"]["peak"]["power_w"], 600);
  EXPECT_FALSE(object["device"]["mean"].contains("power_w"));
  EXPECT_FALSE(object.contains("final_eval"));
  EXPECT_EQ(object["warnings"][0], "the learning rate is 0");
  EXPECT_EQ(object["started"], "1970-01-01T00:00:00Z");
}

TEST(Summary, ALossThatIsNotANumberSurvives) {
  RunSummary summary = example();
  summary.final_loss = std::numeric_limits<double>::quiet_NaN();
  const TestFolder folder;
  write_summary(folder.path("summary.json"), summary);
  EXPECT_TRUE(std::isnan(read_summary(folder.path("summary.json")).final_loss));
}

std::string refusal(std::string_view text) {
  try {
    parse_summary(text, "summary.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "read";
}

TEST(Summary, DamageIsNamed) {
  EXPECT_EQ(refusal("{\"status\":"), "summary.json: this is no JSON; it was damaged after it was written");
  EXPECT_EQ(refusal("[]"), "summary.json: this is no JSON object");
  EXPECT_EQ(refusal("{}"), "summary.json: there is no field 'status'");
  EXPECT_EQ(refusal("{\"status\":1}"), "summary.json: 'status' is 1 where a string is expected");
}

TEST(RunStatistics, PercentilesAreWithinHalfAPercent) {
  RunStatistics statistics;
  for (int i = 1; i <= 10'000; ++i) {
    StepRecord record;
    record.seconds = 1e-3 * i;
    statistics.add(record);
  }
  EXPECT_NEAR(statistics.step_time_ms().p50, 5000, 25);
  EXPECT_NEAR(statistics.step_time_ms().p95, 9500, 47.5);
  EXPECT_EQ(statistics.steps(), 10'000);
}

TEST(RunStatistics, EqualStepsHaveExactPercentiles) {
  RunStatistics statistics;
  for (const double seconds : {0.25, 0.25, 0.25}) {
    StepRecord record;
    record.seconds = seconds;
    statistics.add(record);
  }
  EXPECT_EQ(statistics.step_time_ms(), (StepTimeMs{250, 250}));
}

TEST(RunStatistics, ExtremeTimesAreCounted) {
  TimeHistogram times;
  EXPECT_EQ(times.percentile(0.5), 0);
  for (const double seconds : {0.0, 1e-9, 1e9}) times.add(seconds);
  EXPECT_EQ(times.count(), 3);
  EXPECT_LE(times.percentile(0.5), 1e-6);
  EXPECT_GT(times.percentile(1), 1e4);
}

TEST(RunStatistics, SharesSumToOneAndWhatIsMissingIsOther) {
  RunStatistics statistics;
  EXPECT_EQ(statistics.breakdown(), StepShares());
  StepRecord record;
  record.seconds = 4;
  record.samples = 64;
  record.tokens = 128;
  record.shares.compute = 2;
  record.shares.optimizer = 1;
  statistics.add(record);
  statistics.add(record);
  RunSummary summary;
  statistics.fill(summary);
  EXPECT_EQ(summary.breakdown, (StepShares{0.5, 0, 0, 0.25, 0.25}));
  EXPECT_EQ(summary.samples_per_second, 16);
  EXPECT_EQ(summary.tokens_per_second, 32);
}

}  // namespace
}  // namespace lockstep

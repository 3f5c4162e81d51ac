#include "observe/metrics_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/test_folder.h"
#include "observe/metrics_reader.h"

namespace lockstep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

StepRecord step(int64_t number, double loss = 0.5) {
  StepRecord record;
  record.step = number;
  record.loss = loss;
  record.lr = 1e-3;
  record.grad_norm = 1.0 / 3.0;
  record.samples = 32;
  record.count = 32;
  record.seconds = 0.01;
  record.shares.compute = 0.008;
  return record;
}

EvalRecord evaluation(int64_t number) {
  EvalRecord record;
  record.step = number;
  record.loss = 0.25;
  record.auc = 0.9375;
  record.samples = 100;
  record.best = true;
  return record;
}

std::vector<int64_t> numbers(const std::vector<StepRecord>& steps) {
  std::vector<int64_t> list;
  for (const StepRecord& record : steps) list.push_back(record.step);
  return list;
}

class MetricsFileTest : public ::testing::Test {
 protected:
  void write_steps(int64_t first, int64_t last, std::optional<int64_t> resume = std::nullopt) const {
    MetricsFile file(path(), resume);
    for (int64_t i = first; i <= last; ++i) file.add(step(i));
  }
  std::string path() const { return folder_.path("metrics.jsonl"); }
  std::string text() const { return read_file(path()); }

  TestFolder folder_;
};

TEST_F(MetricsFileTest, LinesAreReadBackBitForBit) {
  StepRecord odd = step(1, -0.0);
  odd.lr = 5e-324;
  odd.grad_norm = 1e300;
  odd.tokens = INT64_MAX;
  odd.action = kSkipped;
  odd.note = "line\nbreak \"quoted\" \x01 é";
  const EvalRecord eval = evaluation(1);
  {
    MetricsFile file(path());
    file.add(odd);
    file.add(eval);
    file.sync();
  }
  const Metrics metrics = read_metrics(path());
  ASSERT_EQ(metrics.steps.size(), 1U);
  EXPECT_EQ(metrics.steps[0], odd);
  EXPECT_TRUE(std::signbit(metrics.steps[0].loss));
  EXPECT_EQ(metrics.evaluations, std::vector{eval});
  EXPECT_FALSE(metrics.torn);
}

// The evaluation of the step that a run resumes from may be made again.
TEST_F(MetricsFileTest, AnEvaluationThatIsMadeAgainIsCutOff) {
  const auto evaluations_left = [&](int64_t resume, bool again) {
    {
      MetricsFile file(path());
      for (const int64_t i : {1, 2}) {
        file.add(step(i));
        file.add(evaluation(i));
      }
      file.add(step(3));
    }
    { const MetricsFile resumed(path(), resume, again); }
    EXPECT_EQ(numbers(read_metrics(path()).steps).back(), resume);
    return read_metrics(path()).evaluations.size();
  };
  EXPECT_EQ(evaluations_left(2, false), 2U);
  EXPECT_EQ(evaluations_left(2, true), 1U);
  EXPECT_EQ(evaluations_left(1, true), 0U);
  EXPECT_EQ(evaluations_left(3, true), 2U);
}

TEST_F(MetricsFileTest, AStepIsOneLine) {
  write_steps(1, 1);
  EXPECT_EQ(text(),
            R"({"kind":"step","step":1,"loss":0.5,"lr":0.001,"grad_norm":0.3333333333333333,"samples":32,)"
            R"("tokens":0,"count":32,"seconds":0.01,"time":{"compute":0.008,"exposed_comm":0.0,)"
            R"("input_wait":0.0,"optimizer":0.0,"other":0.0}})"
            "\n");
}

TEST_F(MetricsFileTest, NonFiniteNumbersAreWords) {
  {
    MetricsFile file(path());
    StepRecord record = step(1, kNan);
    record.grad_norm = std::numeric_limits<double>::infinity();
    record.lr = -std::numeric_limits<double>::infinity();
    file.add(record);
  }
  EXPECT_NE(text().find(R"("loss":"nan","lr":"-inf","grad_norm":"inf")"), std::string::npos);
  const Metrics metrics = read_metrics(path());
  EXPECT_TRUE(std::isnan(metrics.steps[0].loss));
  EXPECT_EQ(metrics.steps[0].grad_norm, std::numeric_limits<double>::infinity());
  EXPECT_EQ(metrics.steps[0].lr, -std::numeric_limits<double>::infinity());
}

TEST_F(MetricsFileTest, AScoreThatIsUndefinedIsNull) {
  {
    MetricsFile file(path());
    EvalRecord record = evaluation(3);
    record.auc = kNan;
    file.add(record);
  }
  EXPECT_NE(text().find(R"("auc":null)"), std::string::npos) << text();
  const EvalRecord read = read_metrics(path()).evaluations[0];
  ASSERT_TRUE(read.auc);
  EXPECT_TRUE(std::isnan(*read.auc));
  EXPECT_FALSE(read.pr_auc);
}

TEST_F(MetricsFileTest, ANoteThatIsNoUtf8IsStillJson) {
  {
    MetricsFile file(path());
    StepRecord record = step(1);
    record.note = "\xff";
    file.add(record);
  }
  EXPECT_EQ(read_metrics(path()).steps[0].note, "\xef\xbf\xbd");
}

TEST_F(MetricsFileTest, ANewRunStartsAnew) {
  write_steps(1, 5);
  write_steps(1, 2);
  EXPECT_EQ(numbers(read_metrics(path()).steps), (std::vector<int64_t>{1, 2}));
}

// The same bytes as a run that was never interrupted, wherever the interruption came.
TEST_F(MetricsFileTest, AResumedFileEqualsAnUndisturbedOne) {
  write_steps(1, 6);
  const std::string undisturbed = text();
  for (size_t bytes = 0; bytes <= undisturbed.size(); ++bytes) {
    const std::string left = undisturbed.substr(0, bytes);
    const auto complete = std::count(left.begin(), left.end(), '\n');
    const int64_t checkpoint = std::min<int64_t>(complete, 3);
    folder_.write("metrics.jsonl", left);
    write_steps(checkpoint + 1, 6, checkpoint);
    ASSERT_EQ(text(), undisturbed) << "cut after " << bytes << " bytes";
  }
}

TEST_F(MetricsFileTest, AResumeKeepsTheEvaluationOfItsStepAndDropsDamageBehindIt) {
  {
    MetricsFile file(path());
    file.add(step(1));
    file.add(evaluation(1));
  }
  const std::string kept = text();
  folder_.write("metrics.jsonl", kept + std::string(100, '\0') + "\n{\"step\":\n" + "half");
  { const MetricsFile file(path(), 1); }
  EXPECT_EQ(text(), kept);
}

TEST_F(MetricsFileTest, AResumeWithoutAFileStartsOne) {
  write_steps(4, 5, 3);
  EXPECT_EQ(numbers(read_metrics(path()).steps), (std::vector<int64_t>{4, 5}));
}

TEST_F(MetricsFileTest, StepsAfterARewindReplaceThoseBefore) {
  write_steps(1, 4);
  {
    MetricsFile file(path(), 4);
    StepRecord bad = step(5, kNan);
    bad.action = kRewound;
    file.add(bad);
    for (int64_t i = 3; i <= 6; ++i) file.add(step(i, 0.1));
  }
  const Metrics metrics = read_metrics(path());
  EXPECT_EQ(numbers(metrics.steps), (std::vector<int64_t>{1, 2, 3, 4, 5, 3, 4, 5, 6}));
  const std::vector<StepRecord> surviving = surviving_steps(metrics.steps);
  EXPECT_EQ(numbers(surviving), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(surviving[2].loss, 0.1);
  // What happened before the rewind stays when the run resumes after it.
  { const MetricsFile file(path(), 4); }
  EXPECT_EQ(numbers(read_metrics(path()).steps), (std::vector<int64_t>{1, 2, 3, 4, 5, 3, 4}));
}

TEST_F(MetricsFileTest, ATornLastLineIsLeftOut) {
  write_steps(1, 2);
  const std::string whole = text();
  const Metrics metrics = parse_metrics(whole.substr(0, whole.size() - 1), "m");
  EXPECT_EQ(metrics.steps.size(), 1U);
  EXPECT_TRUE(metrics.torn);
}

std::string damage(const std::string& text) {
  try {
    parse_metrics(text, "runs/a/metrics.jsonl");
  } catch (const UserError& error) {
    return error.what();
  }
  return "read";
}

TEST_F(MetricsFileTest, DamageIsNamedWithItsLine) {
  write_steps(1, 1);
  const std::string good = text();
  EXPECT_EQ(damage(good + "{\"kind\":\n" + good),
            "runs/a/metrics.jsonl:2: this line is no JSON object; it was damaged after it was written");
  EXPECT_EQ(damage("\n"),
            "runs/a/metrics.jsonl:1: this line is no JSON object; it was damaged after it was written");
  EXPECT_EQ(damage("{}\n"), "runs/a/metrics.jsonl:1: the line's 'kind' is neither \"step\" nor \"eval\"");
  EXPECT_EQ(damage("{\"kind\":\"step\"}\n"), "runs/a/metrics.jsonl:1: there is no field 'step'");
  EXPECT_EQ(
      damage("{\"kind\":\"eval\",\"step\":1,\"loss\":\"low\"}\n"),
      "runs/a/metrics.jsonl:1: 'loss' is \"low\" where a number, \"nan\", \"inf\" or \"-inf\" is expected");
  EXPECT_EQ(damage("{\"kind\":\"eval\",\"step\":1.5}\n"),
            "runs/a/metrics.jsonl:1: 'step' is 1.5 where a whole number is expected");
  EXPECT_EQ(damage("{\"kind\":\"eval\",\"step\":18446744073709551615}\n"),
            "runs/a/metrics.jsonl:1: 'step' is 18446744073709551615 where a whole number is expected");
}

TEST_F(MetricsFileTest, AFolderThatIsNotThereIsNamed) {
  try {
    const MetricsFile file(folder_.path("none/metrics.jsonl"));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.what(),
              "cannot open " + folder_.path("none/metrics.jsonl") + ": No such file or directory");
  }
}

}  // namespace
}  // namespace lockstep

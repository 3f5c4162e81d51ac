// A trained model used: predictions and evaluations of other files, by the constants that the run kept.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/testing/test_images.h"
#include "run/train_case.h"

namespace lockstep {
namespace {

using Args = std::vector<std::string>;
using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kFraudJob = R"(
name: fraud
model: {family: tabular, dim: 4, rows: 600, bottom: [8], top: [8]}
data:
  train: {format: csv, files: unset, label: is_fraud, columns: {ignore: [card]}}
  eval: {format: csv, files: unset}
  seed: 3
train:
  steps: 40
  global_batch: 64
  microbatch: 16
  lr: {base: 1e-2}
  ema: 0.9
  eval: {every: 20}
checkpoint: {every: 20, keep: 2}
)";

constexpr const char* kTransforms = R"([
  {name: bucketise, columns: [amount], as: [amount_bucket], quantiles: 8},
  {name: vocabulary, columns: [merchant], size: 100, min_count: 2},
  {name: cross, columns: [amount_bucket, channel], buckets: 50},
  {name: fill, columns: [previous_amount, mean_amount], method: median},
  {name: log, columns: [amount, previous_amount, mean_amount]},
  {name: normalise, columns: [amount]},
  {name: cast, columns: [is_fraud], to: text}])";

// Fields of test data hold neither quotes nor commas.
Rows rows_of(const std::string& csv) {
  Rows rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(field);
    if (line.ends_with(',')) rows.back().emplace_back();
  }
  return rows;
}

size_t place_of(const Rows& rows, const std::string& column) {
  const auto found = std::find(rows.at(0).begin(), rows.at(0).end(), column);
  EXPECT_NE(found, rows[0].end()) << column;
  return static_cast<size_t>(found - rows[0].begin());
}

std::vector<std::string> column_of(const std::string& csv, const std::string& column) {
  const Rows rows = rows_of(csv);
  const size_t place = place_of(rows, column);
  std::vector<std::string> values;
  for (size_t r = 1; r < rows.size(); ++r) values.push_back(rows[r].at(place));
  return values;
}

std::string without_column(const std::string& csv, const std::string& column) {
  Rows rows = rows_of(csv);
  const size_t place = place_of(rows, column);
  std::string text;
  for (auto& row : rows) {
    row.erase(row.begin() + static_cast<int64_t>(place));
    text += fmt::format("{}\n", fmt::join(row, ","));
  }
  return text;
}

double number(const std::string& text) {
  double value = -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  EXPECT_TRUE(failure == std::errc() && end == text.data() + text.size()) << text;
  return value;
}

// The share of pairs in order, counted in halves, from what was written alone.
double auc_of(const std::string& csv) {
  const std::vector<std::string> labels = column_of(csv, "is_fraud"), texts = column_of(csv, "probability");
  std::vector<double> positives, negatives;
  for (size_t i = 0; i < labels.size(); ++i)
    (labels[i] == "1" ? positives : negatives).push_back(number(texts[i]));
  uint64_t halves = 0;
  for (const double p : positives)
    for (const double n : negatives) halves += p > n ? 2 : p == n ? 1 : 0;
  return static_cast<double>(halves) /
         (2.0 * static_cast<double>(positives.size()) * static_cast<double>(negatives.size()));
}

class UsedModel : public ::testing::Test {
 protected:
  explicit UsedModel(const char* job = kFraudJob) : job_(job) {}

  Ended lockstep(const Args& arguments) const {
    return LockstepProcess(arguments, job_.log(fmt::format("command{}", commands_++))).wait();
  }
  std::string path(const std::string& name) const { return job_.folder().path(name); }
  std::string text(const std::string& name) const { return read_file(path(name)); }

  void make_fraud(int64_t rows) const {
    const Ended synth = lockstep(
        {"data", "synth", "fraud", "--rows", std::to_string(rows), "--shards", "2", "--out", path("tx")});
    ASSERT_EQ(synth.code, 0) << synth.err;
  }
  RunSummary train_fraud(const std::string& run, Args settings = {}) const {
    settings.push_back("data.train.files=" + path("tx/train-*.csv"));
    settings.push_back("data.eval.files=" + path("tx/eval-*.csv"));
    return job_.trained(run, settings);
  }
  // What is written to `out`.
  std::string predicted(const std::string& run, const std::string& data, const std::string& out,
                        const Args& more = {}) const {
    Args arguments = {"predict", job_.output(run), "--data", path(data), "--out", path(out)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = lockstep(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(path(out + ".partial")));
    return ended.code == 0 ? text(out) : "";
  }
  nlohmann::json evaluated(const std::string& run, const Args& more) const {
    Args arguments = {"eval", job_.output(run), "--json", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = lockstep(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return nlohmann::json::parse(ended.out);
  }
  const TrainCase& job() const { return job_; }

 private:
  TrainCase job_;
  mutable int commands_ = 0;
};

void expect_same_metrics(const nlohmann::json& found, const EvalRecord& reported) {
  const nlohmann::json& metrics = found.at("metrics");
  EXPECT_EQ(metrics.at("loss").get<double>(), reported.loss);
  EXPECT_EQ(found.at("records").get<int64_t>(), reported.samples);
  const auto same = [&](const char* metric, const std::optional<double>& value) {
    EXPECT_EQ(metrics.contains(metric), value.has_value()) << metric;
    if (value) {
      EXPECT_EQ(metrics.at(metric).get<double>(), *value) << metric;
    }
  };
  same("accuracy", reported.accuracy);
  same("auc", reported.auc);
  same("f1", reported.best_f1);
  same("perplexity", reported.perplexity);
}

TEST_F(UsedModel, EvaluationAndPredictionsGiveTheAucThatTrainingReported) {
  make_fraud(4000);
  const RunSummary summary = train_fraud("run");
  ASSERT_TRUE(summary.final_eval && summary.final_eval->auc);
  expect_same_metrics(evaluated("run", {"--data", path("tx/eval-*.csv")}), *summary.final_eval);
  expect_same_metrics(evaluated("run", {"--data", path("tx/eval-*.csv"), "--threads", "3"}),
                      *summary.final_eval);
  // The run's own held-out records need not be named.
  expect_same_metrics(evaluated("run", {}), *summary.final_eval);
  const std::string answers = predicted("run", "tx/eval-*.csv", "answers.csv");
  EXPECT_EQ(auc_of(answers), *summary.final_eval->auc);
  EXPECT_EQ(column_of(answers, "merchant"), column_of(text("tx/eval-00000-of-00001.csv"), "merchant"));
}

TEST_F(UsedModel, TransformsKeepTheConstantsOfTheRun) {
  make_fraud(4000);
  const RunSummary summary = train_fraud("run", {std::string("data.train.transforms=") + kTransforms,
                                                 "data.train.columns.ignore=[card, time, hour]"});
  expect_same_metrics(evaluated("run", {"--data", path("tx/eval-*.csv")}), *summary.final_eval);
  const std::string answers = predicted("run", "tx/eval-*.csv", "answers.csv");
  EXPECT_EQ(auc_of(answers), *summary.final_eval->auc);
  // One record alone is read as it is among the others: nothing is fitted to it.
  const Rows rows = rows_of(answers);
  const std::string header = text("tx/eval-00000-of-00001.csv");
  std::istringstream lines(header);
  std::string first, third;
  std::getline(lines, first);
  for (int i = 0; i < 3; ++i) std::getline(lines, third);
  job().folder().write("one.csv", first + "\n" + third + "\n");
  EXPECT_EQ(rows_of(predicted("run", "one.csv", "one-answer.csv")).at(1), rows.at(3));
}

TEST_F(UsedModel, TheSameForAnyThreadsAndBatches) {
  make_fraud(20000);
  train_fraud("run");
  const std::string one = predicted("run", "tx/*.csv", "one.csv", {"--threads", "1"});
  EXPECT_EQ(rows_of(one).size(), 20001u);
  EXPECT_EQ(predicted("run", "tx/*.csv", "four.csv", {"--threads", "4"}), one);
  EXPECT_EQ(predicted("run", "tx/*.csv", "odd.csv", {"--threads", "4", "--batch", "37"}), one);
  EXPECT_EQ(predicted("run", "tx/*.csv", "large.csv", {"--threads", "2", "--batch", "20000"}), one);
}

TEST_F(UsedModel, NeedsNoLabel) {
  make_fraud(2000);
  train_fraud("run");
  const std::string with = predicted("run", "tx/eval-*.csv", "with.csv");
  job().folder().write("new.csv", without_column(text("tx/eval-00000-of-00001.csv"), "is_fraud"));
  const std::string without = predicted("run", "new.csv", "without.csv");
  EXPECT_EQ(without, without_column(with, "is_fraud"));
  // An evaluation does.
  const Ended refused = lockstep({"eval", job().output("run"), "--data", path("new.csv")});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("there is no column 'is_fraud'"), std::string::npos) << refused.err;
}

TEST_F(UsedModel, ColumnsThatTheFilesLackAreNamed) {
  make_fraud(2000);
  train_fraud("run");
  job().folder().write("lacks.csv", without_column(text("tx/eval-00000-of-00001.csv"), "merchant"));
  job().folder().write("out.csv", "as it was\n");
  const Ended lacks =
      lockstep({"predict", job().output("run"), "--data", path("lacks.csv"), "--out", path("out.csv")});
  EXPECT_EQ(lacks.code, 2);
  EXPECT_NE(lacks.err.find("lacks.csv:1: there is no column 'merchant'"), std::string::npos) << lacks.err;
  const Ended unknown = lockstep({"predict", job().output("run"), "--data", path("tx/eval-*.csv"), "--out",
                                  path("out.csv"), "--columns", "merchant,amuont"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("no column 'amuont'"), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.err.find("amount"), std::string::npos) << unknown.err;
  EXPECT_EQ(text("out.csv"), "as it was\n");
}

TEST_F(UsedModel, WhatIsMissingIsWhatTheRunSays) {
  make_fraud(2000);
  train_fraud("run", {"data.missing_values=[unknown]"});
  const std::string data = text("tx/eval-00000-of-00001.csv");
  const Rows rows = rows_of(data);
  const std::string amount = "," + rows.at(100).at(place_of(rows, "amount")) + ",";
  const auto with = [&](const std::string& written) {
    std::string changed = data;
    changed.replace(changed.find(amount), amount.size(), "," + written + ",");
    job().folder().write("new.csv", changed);
    return column_of(predicted("run", "new.csv", "out.csv"), "probability");
  };
  EXPECT_EQ(with("unknown"), with(""));
  EXPECT_NE(with("unknown"), with("1.5"));
}

TEST_F(UsedModel, ABadRecordLeavesNoOutput) {
  make_fraud(2000);
  train_fraud("run");
  std::string data = text("tx/eval-00000-of-00001.csv");
  const Rows rows = rows_of(data);
  const std::string amount = rows.at(100).at(place_of(rows, "amount"));
  data.replace(data.find("," + amount + ","), amount.size() + 2, ",much,");
  job().folder().write("bad.csv", data);
  const Ended ended =
      lockstep({"predict", job().output("run"), "--data", path("bad.csv"), "--out", path("out.csv")});
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("bad.csv:"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("much"), std::string::npos) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(path("out.csv")) || std::filesystem::exists(path("out.csv.partial")));
}

TEST_F(UsedModel, OtherFormatsInAndOut) {
  make_fraud(2000);
  train_fraud("run");
  const std::string csv = predicted("run", "tx/eval-*.csv", "answers.csv");
  const std::vector<std::string> wanted = column_of(csv, "probability");
  for (const char* format : {"parquet", "jsonl"}) {
    ASSERT_EQ(
        lockstep({"data", "convert", path("tx/eval-*.csv"), "--to", format, "--out", path(format)}).code, 0);
    const std::string in = fmt::format("{}/eval-00000-of-00001.{}", format, format);
    EXPECT_EQ(column_of(predicted("run", in, "from-other.csv", {"--columns", "merchant"}), "probability"),
              wanted)
        << format;
  }
  std::istringstream lines(predicted("run", "tx/eval-*.csv", "answers.jsonl"));
  const std::vector<std::string> merchants = column_of(csv, "merchant");
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto record = nlohmann::json::parse(line);
    EXPECT_EQ(record.at("probability").get<double>(), number(wanted.at(count)));
    EXPECT_EQ(record.at("merchant").get<std::string>(), merchants.at(count));
    EXPECT_TRUE(record.at("amount").is_number());
  }
  EXPECT_EQ(count, wanted.size());
  // What is written as Parquet reads back as what is written as CSV.
  predicted("run", "tx/eval-*.csv", "answers.parquet");
  ASSERT_EQ(lockstep({"data", "convert", path("answers.parquet"), "--to", "csv", "--out", path("back")}).code,
            0);
  EXPECT_EQ(column_of(text("back/answers.csv"), "probability"), wanted);
}

TEST_F(UsedModel, ColumnsDecisionsAndStandardOutput) {
  make_fraud(2000);
  train_fraud("run");
  const std::string all = predicted("run", "tx/eval-*.csv", "all.csv");
  const std::string chosen =
      predicted("run", "tx/eval-*.csv", "chosen.csv", {"--columns", "card,amount", "--threshold", "0.25"});
  EXPECT_EQ(rows_of(chosen).at(0), (Args{"card", "amount", "probability", "decision"}));
  const auto probabilities = column_of(chosen, "probability"), decisions = column_of(chosen, "decision");
  EXPECT_EQ(probabilities, column_of(all, "probability"));
  for (size_t i = 0; i < decisions.size(); ++i)
    EXPECT_EQ(decisions[i], number(probabilities[i]) >= 0.25 ? "1" : "0");
  const Ended out = lockstep({"predict", job().output("run") + "/best", "--data", path("tx/eval-*.csv"),
                              "--out", "-", "--id", "card", "--quiet"});
  EXPECT_EQ(out.code, 0) << out.err;
  EXPECT_EQ(out.err, "");
  EXPECT_EQ(rows_of(out.out).at(0), (Args{"card", "probability"}));
  EXPECT_EQ(rows_of(out.out).size(), rows_of(all).size());
  // The answer of an answer has no name of its own left.
  const Ended twice =
      lockstep({"predict", job().output("run"), "--data", path("all.csv"), "--out", path("twice.csv")});
  EXPECT_EQ(twice.code, 2);
  EXPECT_NE(twice.err.find("column 'probability'"), std::string::npos) << twice.err;
  const Ended over = lockstep(
      {"predict", job().output("run"), "--data", path("all.csv"), "--out", path("all.csv"), "--id", "card"});
  EXPECT_EQ(over.code, 2);
  EXPECT_EQ(text("all.csv"), all);
}

TEST_F(UsedModel, AnEvaluationShowsWhatLiesBehindItsMetrics) {
  make_fraud(4000);
  const RunSummary summary = train_fraud("run");
  const nlohmann::json found = evaluated("run", {"--data", path("tx/eval-*.csv")});
  int64_t counted = 0, right = 0;
  for (int t = 0; t < 2; ++t)
    for (int p = 0; p < 2; ++p) {
      counted += found.at("confusion").at(t).at(p).get<int64_t>();
      right += t == p ? found.at("confusion").at(t).at(p).get<int64_t>() : 0;
    }
  EXPECT_EQ(counted, summary.final_eval->samples);
  EXPECT_EQ(static_cast<double>(right) / static_cast<double>(counted), *summary.final_eval->accuracy);
  int64_t in_bins = 0;
  for (const auto& bin : found.at("calibration")) in_bins += bin.at("records").get<int64_t>();
  EXPECT_EQ(in_bins, counted);
  EXPECT_EQ(found.at("curve").back().at("recall").get<double>(), 1.0);
  EXPECT_EQ(found.at("curve").back().at("false_positive_rate").get<double>(), 1.0);
  const auto at_best = found.at("confusion_at_best_f1");
  const auto cell = [&](int t, int p) { return at_best.at(t).at(p).get<double>(); };
  EXPECT_EQ(2 * cell(1, 1) / (2 * cell(1, 1) + cell(0, 1) + cell(1, 0)), *summary.final_eval->best_f1);
  const Ended shown = lockstep({"eval", job().output("run"), "--data", path("tx/eval-*.csv"), "--ascii"});
  for (const char* part : {"auc", "confusion at probability 0.5", "ROC: recall", "calibration"})
    EXPECT_NE(shown.out.find(part), std::string::npos) << part << " is not in\n" << shown.out;
  EXPECT_NE(shown.out.find(fmt::format("{}", *summary.final_eval->auc)), std::string::npos) << shown.out;
}

TEST_F(UsedModel, WhatIsNoRunIsSaid) {
  const Ended nothing = lockstep({"predict", path("nowhere"), "--data", "x.csv", "--out", "-"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.err.find("there is no such folder"), std::string::npos) << nothing.err;
  std::filesystem::create_directories(path("empty"));
  const Ended empty = lockstep({"eval", path("empty")});
  EXPECT_EQ(empty.code, 2);
  EXPECT_NE(empty.err.find("no complete checkpoint"), std::string::npos) << empty.err;
}

constexpr const char* kTextJob = R"(
name: text
model: {family: gpt, layers: 1, dim: 16, heads: 2, vocab: 256, seq: 16}
data: {train: {format: text, files: unset}, eval: {format: text, files: unset}, seed: 3}
train: {steps: 12, global_batch: 16, microbatch: 4, lr: {base: 1e-2}}
)";

class UsedTokens : public UsedModel {
 protected:
  UsedTokens() : UsedModel(kTextJob) {}
};

TEST_F(UsedTokens, EveryRecordHasItsLoss) {
  std::string words;
  for (int i = 0; i < 400; ++i) words += fmt::format("word {} follows ", i % 23);
  job().folder().write("train.txt", words);
  job().folder().write("eval.txt", words.substr(37, 16 * 11 + 1));
  const RunSummary summary =
      job().trained("run", {"data.train.files=" + path("train.txt"), "data.eval.files=" + path("eval.txt")});
  expect_same_metrics(evaluated("run", {"--data", path("eval.txt")}), *summary.final_eval);
  const std::string answers = predicted("run", "eval.txt", "answers.csv");
  EXPECT_EQ(rows_of(answers).at(0), (Args{"record", "loss", "tokens"}));
  const auto losses = column_of(answers, "loss"), tokens = column_of(answers, "tokens");
  ASSERT_EQ(static_cast<int64_t>(losses.size()), summary.final_eval->samples);
  double sum = 0, all = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    sum += number(losses[i]) * number(tokens[i]);
    all += number(tokens[i]);
  }
  EXPECT_NEAR(sum / all, summary.final_eval->loss, 1e-5);
}

constexpr const char* kMailJob = R"(
name: mail
model: {family: encoder, layers: 1, dim: 16, heads: 2, vocab: 257, seq: 16, classes: 3}
data: {train: {format: csv, files: unset, text: subject, label: kind}, eval: {format: csv, files: unset}, seed: 3}
train: {steps: 30, global_batch: 16, microbatch: 4, lr: {base: 1e-2}, eval: {metric: accuracy}}
)";

class UsedEncoder : public UsedModel {
 protected:
  UsedEncoder() : UsedModel(kMailJob) {}
};

TEST_F(UsedEncoder, ClassesHaveProbabilities) {
  const auto mail = [](int count, bool labelled) {
    std::string text = labelled ? "subject,kind\n" : "subject\n";
    for (int i = 0; i < count; ++i) {
      const char* const words[] = {"win money", "lunch today", "server down"};
      text +=
          fmt::format("{} {}", words[i % 3], i * 7 % 10) + (labelled ? fmt::format(",{}\n", i % 3) : "\n");
    }
    return text;
  };
  job().folder().write("train.csv", mail(120, true));
  job().folder().write("eval.csv", mail(33, true));
  job().folder().write("new.csv", mail(33, false));
  const RunSummary summary =
      job().trained("run", {"data.train.files=" + path("train.csv"), "data.eval.files=" + path("eval.csv")});
  const nlohmann::json found = evaluated("run", {"--data", path("eval.csv")});
  expect_same_metrics(found, *summary.final_eval);
  EXPECT_EQ(found.at("confusion").size(), 3u);
  const std::string answers = predicted("run", "new.csv", "answers.csv");
  EXPECT_EQ(rows_of(answers).at(0),
            (Args{"subject", "class", "probability", "probability.0", "probability.1", "probability.2"}));
  const auto classes = column_of(answers, "class"), best = column_of(answers, "probability");
  int64_t right = 0;
  for (size_t i = 0; i < classes.size(); ++i) {
    double sum = 0;
    for (int c = 0; c < 3; ++c) sum += number(column_of(answers, fmt::format("probability.{}", c)).at(i));
    EXPECT_NEAR(sum, 1, 1e-12);
    EXPECT_EQ(best[i], column_of(answers, "probability." + classes[i]).at(i));
    right += classes[i] == std::to_string(i % 3) ? 1 : 0;
  }
  EXPECT_EQ(static_cast<double>(right) / static_cast<double>(classes.size()), *summary.final_eval->accuracy);
  EXPECT_EQ(rows_of(predicted("run", "new.csv", "likeliest.csv", {"--likeliest"})).at(0),
            (Args{"subject", "class", "probability"}));
}

constexpr const char* kImagesJob = R"(
name: images
model: {family: resnet, width: 4, image: 32, classes: 3}
data: {train: {format: images, files: unset}, eval: {format: images, files: unset}, seed: 3}
train: {steps: 4, global_batch: 8, microbatch: 2, optimizer: {name: sgd}, lr: {base: 1e-2}, eval: {metric: accuracy}}
)";

class UsedImages : public UsedModel {
 protected:
  UsedImages() : UsedModel(kImagesJob) {}
};

TEST_F(UsedImages, ClassesHaveTheNamesOfTheTrainingFolders) {
  const char* const kinds[] = {"ant", "bee", "cat"};
  for (int kind = 0; kind < 3; ++kind)
    for (int i = 0; i < 6; ++i) {
      const std::string jpeg = to_jpeg(striped_image(40, 36, kind, i));
      job().folder().write(fmt::format("train/{}/{}.jpg", kinds[kind], i), jpeg);
      // Evaluated on two of the three classes, whose labels must stay those of training.
      if (kind > 0 && i < 3) job().folder().write(fmt::format("eval/{}/{}.jpg", kinds[kind], i), jpeg);
      if (i < 2) job().folder().write(fmt::format("new/{}-{}.jpg", kinds[kind], i), jpeg);
    }
  const RunSummary summary =
      job().trained("run", {"data.train.files=" + path("train"), "data.eval.files=" + path("eval")});
  const nlohmann::json found = evaluated("run", {"--data", path("eval")});
  expect_same_metrics(found, *summary.final_eval);
  EXPECT_EQ(found.at("classes"), nlohmann::json({"ant", "bee", "cat"}));
  const std::string answers = predicted("run", "new", "answers.csv");
  EXPECT_EQ(rows_of(answers).at(0), (Args{"record", "place", "class", "probability", "probability.ant",
                                          "probability.bee", "probability.cat"}));
  const auto places = column_of(answers, "place");
  ASSERT_EQ(places.size(), 6u);
  EXPECT_EQ(places[0], path("new/ant-0.jpg"));
  EXPECT_EQ(places[5], path("new/cat-1.jpg"));
}

}  // namespace
}  // namespace lockstep

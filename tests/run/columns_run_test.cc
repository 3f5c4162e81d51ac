// What a table is, before the first step: roles, ranges and reasons are said, values that cannot be used are
// found, and what is surely not meant is warned of; through the program itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "run/train_case.h"

namespace lockstep {
namespace {

constexpr const char* kJob = R"(
name: columns
model: {family: tabular, dim: 4, rows: 50, bottom: [8], top: [8]}
data: {train: {format: csv, files: unset, label: y}, hold_out: 0.1, seed: 3}
train: {steps: 6, global_batch: 16, microbatch: 4, lr: {base: 1e-2}}
strategy: {leaves: 4, threads: 2}
)";

constexpr int kRows = 400;

// Columns a (numbers), b (categories), id (texts that do not repeat), e (nothing) and y.
std::string table(char delimiter = ',', const std::string& odd = "5", const std::string& label = "") {
  std::string text = fmt::format("a{0}b{0}id{0}e{0}y\n", delimiter);
  for (int i = 0; i < kRows; ++i)
    text +=
        fmt::format("{1}{0}k{2}{0}t{3}{0}{0}{4}\n", delimiter, i == 250 ? odd : std::to_string(i * 7 % 97),
                    i * 3 % 29, i, !label.empty() && i == kRows - 1 ? label : std::to_string(i % 2));
  return text;
}

class ColumnsRun : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    job_.folder().write(name, text);
    return job_.folder().path(name);
  }
  std::string train_on(const std::string& path) const { return "data.train.files=" + path; }
  Ended tool(const std::vector<std::string>& command, const std::vector<std::string>& settings) const {
    std::vector<std::string> all = command;
    all.push_back(job_.folder().path("job.yaml"));
    for (const std::string& setting : settings) all.insert(all.end(), {"--set", setting});
    return LockstepProcess(all, job_.log("tool")).wait();
  }
  static void expect_says(const std::string& text, const std::vector<std::string>& words) {
    for (const std::string& word : words)
      EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
  void expect_refused(const std::vector<std::string>& settings, const std::vector<std::string>& words) const {
    for (const char* command : {"check", "train"}) {
      const Ended ended = tool({command}, settings);
      EXPECT_EQ(ended.code, 2) << command;
      expect_says(ended.err, words);
    }
  }

  TrainCase job_{kJob};
};

TEST_F(ColumnsRun, EveryColumnIsSaidWithItsRoleAndWhatItHolds) {
  const std::string files = train_on(write("t.csv", table()));
  const std::string left =
      "left out: id (text that hardly repeats, 400 different ones in 400 records), e (no value";
  const Ended trained = job_.train("run", {files});
  EXPECT_EQ(trained.code, 0) << trained.err;
  expect_says(trained.err, {"1 numeric, 1 categorical, label y; " + left});
  const Ended checked = tool({"check"}, {files});
  EXPECT_EQ(checked.code, 0) << checked.err;
  expect_says(checked.out, {"# columns: 1 numeric, 1 categorical, label y; " + left,
                            "# column 'e' is left out: no value in the first 400 records; to use it"});
  const Ended inspected = tool({"data", "inspect"}, {files});
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  expect_says(inspected.out, {"  a f64, numeric: 0 to 96, none missing, 97 different values\n",
                              "  b bytes, categorical: none missing, 29 different values\n",
                              "  y bytes, label: none missing, 2 different values\n",
                              "columns that are left out: 2\n  id: text that hardly repeats",
                              "(100 % missing, 0 different values)"});
}

// By name: the case that made a column disappear without a word.
TEST_F(ColumnsRun, OneNoneInANumericColumnIsAMissingNumber) {
  const std::string none = train_on(write("none.csv", table(',', "None")));
  expect_says(tool({"check"}, {none}).out,
              {"# columns: 1 numeric, 1 categorical", "# column 'a' (numeric): 0 to 96, 0.25 % missing"});
  const std::string nothing = train_on(write("nothing.csv", table(',', "")));
  EXPECT_EQ(job_.trained("none", {none}).weights_sha256, job_.trained("nothing", {nothing}).weights_sha256);
}

TEST_F(ColumnsRun, AnotherTextInANumericColumnStopsByFileLineAndValue) {
  const std::string path = write("t.csv", table(',', "many")), files = train_on(path);
  expect_refused({files},
                 {path + ":252: column 'a' has 'many', which is not a number", "data.missing_values"});
  const Ended skipped = tool({"check"}, {files, "data.errors.policy=skip", "data.errors.limit=0.01"});
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  expect_says(skipped.out, {"# columns: 1 numeric, 1 categorical"});
  const Ended missing = tool({"check"}, {files, "data.missing_values=[many, NA]"});
  EXPECT_EQ(missing.code, 0) << missing.err;
  expect_says(missing.out, {"missing_values: [many, NA]", "0.25 % missing"});
  const std::string list = "data.missing_values=[None, N/A, -, \"?\", many]";
  expect_says(tool({"check"}, {files, list}).out, {"missing_values: [None, N/A, \"-\", \"?\", many]"});
  expect_says(tool({"check"}, {files, "data.missing_values=[?]"}).err, {"put quotes around"});
}

TEST_F(ColumnsRun, DelimitersAreRecognisedOrNamed) {
  const std::string comma = job_.trained("comma", {train_on(write("comma.csv", table()))}).weights_sha256;
  int number = 0;
  for (const char delimiter : {';', '\t', '|'}) {
    const std::string files = train_on(write(fmt::format("t{}.csv", ++number), table(delimiter)));
    EXPECT_EQ(job_.trained(fmt::format("run{}", number), {files}).weights_sha256, comma) << delimiter;
  }
  const std::string semicolons = train_on(job_.folder().path("t1.csv"));
  EXPECT_EQ(job_.trained("named", {semicolons, "data.delimiter=semicolon"}).weights_sha256, comma);
  EXPECT_EQ(job_.trained("quoted", {semicolons, "data.delimiter=\";\""}).weights_sha256, comma);
  EXPECT_EQ(
      job_.trained("tab", {train_on(job_.folder().path("t2.csv")), "data.delimiter=tab"}).weights_sha256,
      comma);
  expect_refused(
      {semicolons, "data.delimiter=tab"},
      {"t1.csv:1: the header has no tab, which data.delimiter says", "it has 4 times a semicolon"});
  expect_refused({semicolons, "data.delimiter=semi"}, {"data.delimiter is 'semi'; write one character"});
}

TEST_F(ColumnsRun, Utf8WithAMarkIsReadAndUtf16IsRefusedByName) {
  const std::string marked = train_on(write("marked.csv", "\xef\xbb\xbf" + table()));
  const std::string plain = train_on(write("plain.csv", table()));
  EXPECT_EQ(job_.trained("marked", {marked}).weights_sha256, job_.trained("plain", {plain}).weights_sha256);
  std::string wide = "\xff\xfe";
  for (const char c : table()) wide += std::string{c, '\0'};
  const std::string path = write("wide.csv", wide);
  expect_refused({train_on(path)}, {path + ": the text is UTF-16LE, and must be UTF-8; convert it: iconv"});
}

// The last record is one that is held out: before, the run trained to its end and then met it.
TEST_F(ColumnsRun, ABadRecordToEvaluateOnIsFoundBeforeTheFirstStep) {
  const std::string path = write("t.csv", table(',', "5", "maybe"));
  expect_refused({train_on(path)}, {fmt::format("{}:{}: ", path, kRows + 1), "'maybe'"});
  const std::string good = write("good.csv", table()), bad = write("eval.csv", table(',', "inf"));
  expect_refused({train_on(good), "data.hold_out=0", "data.eval.files=" + bad, "data.eval.format=csv"},
                 {bad + ":252: column 'a' has 'inf', which is not a number"});
}

TEST_F(ColumnsRun, WhatIsSurelyNotMeantIsWarnedOf) {
  std::string leak = "a,outcome,y\n";
  for (int i = 0; i < kRows; ++i)
    leak += fmt::format("{},{},{}\n", i * 7 % 97, i % 4 == 0 ? "chargeback" : "none", i % 4 == 0 ? 1 : 0);
  const std::string path = write("t.csv", leak), files = train_on(path);
  const auto warned = [&](const std::vector<std::string>& settings, const std::vector<std::string>& words) {
    std::vector<std::string> all = {files};
    all.insert(all.end(), settings.begin(), settings.end());
    const Ended checked = tool({"check"}, all), trained = job_.train("run", all, {"--fresh"});
    EXPECT_EQ(checked.code, 0) << checked.err;
    EXPECT_EQ(trained.code, 0) << trained.err;
    const std::vector<std::string> kept = job_.summary("run").warnings;
    for (const std::string& word : words) {
      expect_says(checked.out, {"# warning: ", word});
      expect_says(trained.err, {"warning ", word});
      EXPECT_TRUE(std::ranges::any_of(kept, [&](const std::string& warning) {
        return warning.find(word) != std::string::npos;
      })) << word;
    }
  };
  warned({}, {"column 'outcome' alone decides the label 'y' in all 400 records"});
  warned({"train.global_batch=1024", "train.microbatch=256"},
         {"train.global_batch 1024 is more than the 360 training records"});
  warned({"train.lr.base=0"}, {"the learning rate is 0"});
  // Under another name, by its content.
  const std::string copy = write("copy.csv", leak);
  warned({"data.hold_out=0", "data.eval.files=" + copy, "data.eval.format=csv"},
         {"evaluated on records that it is trained on", copy + " (the same as " + path + ")"});
  const Ended fine = tool({"check"}, {train_on(write("fine.csv", table()))});
  EXPECT_EQ(fine.out.find("warning"), std::string::npos) << fine.out;
}

}  // namespace
}  // namespace lockstep

// What labels are taken for: their kind, the task they ask for, and what becomes of each.
#include "data/transform/label_encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "data/transform/label_fit.h"
#include "data/transform/transform.h"

namespace lockstep {
namespace {

using Texts = std::vector<std::string>;

// A column of texts; they live as long as it does.
struct Labels {
  explicit Labels(Texts given) : texts(std::move(given)) {
    column.as<std::string_view>().assign(texts.begin(), texts.end());
  }
  Texts texts;
  BlockColumn column = make_column({"y", ValueType::kBytes, 1});
};

Texts repeated(const Texts& texts, int times) {
  Texts all;
  for (int i = 0; i < times; ++i) all.insert(all.end(), texts.begin(), texts.end());
  return all;
}

LabelKind kind_of(const Texts& texts, LabelTask asked = LabelTask::kAuto) {
  const Labels labels(texts);
  return kind_of_labels(labels.column, texts.size(), asked);
}

FittedLabels fit(const Texts& texts, LabelTask asked = LabelTask::kAuto, const ClassWeights& weights = {}) {
  const Labels labels(texts);
  LabelEncoding read{.column = "y"};
  read.kind = kind_of_labels(labels.column, texts.size(), asked);
  // In two blocks, as a table gives them.
  LabelSummary first, second;
  const Labels front(Texts(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(texts.size() / 2)));
  const Labels back(Texts(texts.begin() + static_cast<std::ptrdiff_t>(texts.size() / 2), texts.end()));
  first.add(read, front.column, front.texts.size());
  second.add(read, back.column, back.texts.size());
  first.merge(second);
  return fit_labels(asked, weights, read, first);
}

std::string refusal(const Texts& texts, LabelTask asked = LabelTask::kAuto,
                    const ClassWeights& weights = {}) {
  try {
    fit(texts, asked, weights);
  } catch (const UserError& error) {
    return error.what();
  } catch (const BadValue& bad) {
    return bad.what();
  }
  return "";
}

std::vector<int32_t> classes(const LabelEncoding& encoding, const Texts& texts) {
  const Labels labels(texts);
  std::vector<int32_t> out;
  encode_classes(encoding, labels.column, texts.size(), out);
  return out;
}

std::vector<float> floats(const LabelEncoding& encoding, const Texts& texts) {
  const Labels labels(texts);
  std::vector<float> out;
  encode_labels(encoding, labels.column, texts.size(), out);
  return out;
}

TEST(LabelKind, IsWhatNearlyAllLabelsAre) {
  EXPECT_EQ(kind_of({"0", "1", "true", "False", "1.0", ""}), LabelKind::kZeroOne);
  EXPECT_EQ(kind_of({"0", "1", "2"}), LabelKind::kNumbers);
  EXPECT_EQ(kind_of({"no", "yes", "no"}), LabelKind::kTexts);
  Texts many = repeated({"0", "1"}, 100);
  many.emplace_back("2");
  EXPECT_EQ(kind_of(many), LabelKind::kZeroOne) << "one in 200 is a mistake";
  EXPECT_EQ(kind_of(many, LabelTask::kClassification), LabelKind::kNumbers) << "unless classes are asked for";
  many = repeated({"1.5", "2.5", "7"}, 10);
  many.emplace_back("none");
  EXPECT_EQ(kind_of(many), LabelKind::kNumbers);
  EXPECT_EQ(kind_of({"a", "b"}, LabelTask::kRegression), LabelKind::kNumbers);
}

TEST(LabelFit, DecidesByTheLabels) {
  EXPECT_EQ(fit({"0", "1", "0", "1"}).decision, "y: binary, by its labels 0 and 1");
  EXPECT_EQ(fit(repeated({"yes", "no"}, 3)).decision,
            "y: binary (no is 0, yes is 1), by its 2 different texts: no, yes");
  EXPECT_EQ(fit(repeated({"2", "1"}, 3)).decision,
            "y: binary (1 is 0, 2 is 1), by its 2 different whole numbers: 1, 2");
  EXPECT_EQ(fit(repeated({"red", "green", "blue"}, 3)).decision,
            "y: classification of 3 classes, by its 3 different texts: blue, green, red");
  EXPECT_EQ(fit(repeated({"10", "9", "3"}, 3)).decision,
            "y: classification of 3 classes, by its 3 different whole numbers: 3, 9, 10");
  EXPECT_EQ(fit(repeated({"0.5", "2.25", "-1"}, 3)).decision,
            "y: regression, by its numbers from -1 to 2.25");
  Texts whole;
  for (int i = 0; i < 100; ++i) whole.push_back(std::to_string(i % (kFewNumbers + 1)));
  EXPECT_EQ(fit(whole).encoding.task, LabelTask::kRegression) << "too many whole numbers";
  EXPECT_EQ(fit({"3", "4", "5", "6"}).encoding.task, LabelTask::kRegression) << "they do not repeat";
  EXPECT_EQ(fit(whole, LabelTask::kClassification).decision,
            "y: classification of 21 classes, as model.task says");
}

TEST(LabelFit, LabelsAreNumberedInTheirOrder) {
  const LabelEncoding texts = fit(repeated({"pear", "apple", "fig"}, 2)).encoding;
  EXPECT_EQ(texts.names(), (Texts{"apple", "fig", "pear"}));
  EXPECT_EQ(classes(texts, {"pear", "fig", "apple"}), (std::vector<int32_t>{2, 1, 0}));
  const LabelEncoding numbers = fit(repeated({"10", "9", "3.0"}, 2)).encoding;
  EXPECT_EQ(numbers.names(), (Texts{"3", "9", "10"}));
  EXPECT_EQ(classes(numbers, {"+3", "10.0", "9e0"}), (std::vector<int32_t>{0, 2, 1}));
  const LabelEncoding binary = fit(repeated({"-1", "1"}, 2)).encoding;
  EXPECT_EQ(floats(binary, {"1", "-1"}), (std::vector<float>{1, 0}));
  EXPECT_EQ(floats(fit({"0", "1"}).encoding, {"1", "false", "TRUE"}), (std::vector<float>{1, 0, 1}));
}

TEST(LabelFit, NumbersAreStandardised) {
  const LabelEncoding labels = fit({"10", "20.5", "30", "41.5"}).encoding;
  EXPECT_EQ(labels.task, LabelTask::kRegression);
  EXPECT_EQ(labels.mean, 25.5);
  const std::vector<float> z = floats(labels, {"10", "20.5", "30", "41.5"});
  float sum = 0, squares = 0;
  for (const float value : z) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum, 0, 1e-6);
  EXPECT_NEAR(squares, 4, 1e-5);
}

TEST(LabelFit, BalancedWeightsCountEveryClassAlike) {
  const Texts texts = {"a", "a", "a", "b", "b", "c", "a", "a"};
  const LabelEncoding labels = fit(texts, LabelTask::kAuto, {.balanced = true}).encoding;
  // 8 records, 3 classes: 8 / (3 * 5), 8 / (3 * 2), 8 / (3 * 1).
  ASSERT_EQ(labels.weights.size(), 3u);
  EXPECT_DOUBLE_EQ(labels.weights[0], 8.0 / 15);
  EXPECT_DOUBLE_EQ(labels.weights[1], 8.0 / 6);
  EXPECT_DOUBLE_EQ(labels.weights[2], 8.0 / 3);
}

TEST(LabelFit, GivenWeightsHaveAMeanOfOneOverTheRecords) {
  const Texts texts = {"0", "0", "0", "1"};
  const LabelEncoding labels = fit(texts, LabelTask::kAuto, {.of = {{"true", 5.0}}}).encoding;
  ASSERT_EQ(labels.weights.size(), 2u);
  EXPECT_DOUBLE_EQ(labels.weights[1] / labels.weights[0], 5);
  EXPECT_DOUBLE_EQ(3 * labels.weights[0] + labels.weights[1], 4);
  EXPECT_EQ(refusal(texts, LabelTask::kAuto, {.of = {{"2", 5.0}}}),
            "train.class_weights names '2', which no training record has as its label; these are 0, 1");
  EXPECT_NE(refusal({"1.5", "2.5", "3"}, LabelTask::kAuto, {.balanced = true}).find("is for classes"),
            std::string::npos);
  EXPECT_NE(refusal(texts, LabelTask::kAuto, {.of = {{"0", 0.0}, {"1", 0.0}}}).find("without weight"),
            std::string::npos);
}

TEST(LabelFit, OneClassIsAWarning) {
  EXPECT_EQ(fit({"0", "0"}).warning,
            "every training record has the label 0 in 'y': there is nothing to learn");
  EXPECT_EQ(fit({"a", "a"}).warning,
            "every training record has the label a in 'y': there is nothing to learn");
  EXPECT_EQ(fit({"a", "a"}).encoding.class_count(), 1);
  EXPECT_EQ(fit({"2.5", "2.5"}).encoding.deviation, 1);
  EXPECT_NE(fit({"2.5", "2.5"}).warning, "");
  EXPECT_EQ(fit({"0", "1"}).warning, "");
}

TEST(LabelFit, WhatDoesNotSuitTheTaskIsRefused) {
  EXPECT_EQ(refusal(repeated({"a", "b", "c"}, 2), LabelTask::kBinary),
            "the label 'y' has 3 different values (a, b, c), and model.task is binary; write model.task: "
            "classification");
  EXPECT_EQ(refusal({"1.5", "abc"}, LabelTask::kRegression).substr(0, 58),
            "the label 'y' is 'abc'; it must be a number of at most 1e3");
  Texts names;
  for (int i = 0; i < 30; ++i) names.push_back("id" + std::to_string(i));
  EXPECT_NE(refusal(names).find("30 different texts in 30 records, which hardly repeat"), std::string::npos);
  EXPECT_EQ(fit(names, LabelTask::kClassification).encoding.class_count(), 30);
  Texts many;
  for (int64_t i = 0; i <= kMostClasses; ++i) many.push_back("c" + std::to_string(i));
  EXPECT_NE(refusal(many, LabelTask::kClassification).find("more than 10000 different values"),
            std::string::npos);
}

TEST(LabelEncoding, SaysWhatIsWrongWithALabel) {
  const auto problem = [](const LabelEncoding& encoding, const std::string& text) {
    const Labels labels({text});
    EXPECT_EQ(usable_labels(encoding, labels.column, 1)[0], 0) << text;
    return label_problem(encoding, labels.column, 0);
  };
  const LabelEncoding plain = fit({"0", "1"}).encoding;
  EXPECT_EQ(problem(plain, "maybe"), "the label 'y' is 'maybe'; it must be 0 or 1");
  EXPECT_EQ(problem(plain, "2"),
            "the label 'y' is '2'; it must be 0 or 1, as nearly all are; for more classes write model.task: "
            "classification");
  EXPECT_EQ(
      problem(plain, ""),
      "the label 'y' is ''; it must be 0 or 1; to leave such records out, write data.filter: \"y is not "
      "missing\"");
  EXPECT_EQ(problem(fit(repeated({"a", "b", "c"}, 2)).encoding, "d\n"),
            "the label 'y' is 'd?'; it must be one that training records have: a, b, c");
  const LabelEncoding numbers = fit({"1.5", "2.5", "3.5"}).encoding;
  for (const char* text : {"inf", "1e31", "abc"})
    EXPECT_NE(problem(numbers, text).find("it must be a number of at most 1e30"), std::string::npos) << text;
}

TEST(LabelEncoding, TypedColumnsAreReadAsTheirTextWouldBe) {
  const LabelEncoding numbers = fit(repeated({"3", "9", "10"}, 2)).encoding;
  const BlockColumn typed{"y", 1, std::vector<int64_t>{10, 3, 9}};
  std::vector<int32_t> out;
  encode_classes(numbers, typed, 3, out);
  EXPECT_EQ(out, (std::vector<int32_t>{2, 0, 1}));
  const LabelEncoding values = fit({"1.5", "2.5", "3.5"}).encoding;
  const BlockColumn reals{"y", 1,
                          std::vector<double>{2.5, std::nan(""), std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(usable_labels(values, reals, 3), (std::vector<uint8_t>{1, 0, 0}));
  const BlockColumn flags{"y", 1, std::vector<uint8_t>{1, 0}};
  EXPECT_EQ(kind_of_labels(flags, 2, LabelTask::kAuto), LabelKind::kZeroOne);
}

TEST(LabelEncoding, ComesBackFromItsJson) {
  for (const LabelEncoding& labels :
       {fit({"0", "1"}).encoding, fit(repeated({"a\n\"b\"", "c", "d"}, 2)).encoding,
        fit(repeated({"0.1", "1e22"}, 2), LabelTask::kAuto, {.balanced = true}).encoding,
        fit({"1.1", "2.2", "3.3000000000000003"}).encoding})
    EXPECT_EQ(labels_from_json(labels.json(), "labels.json"), labels) << labels.json();
  for (const char* text : {"", "{}", "[]", R"({"column":"y","task":"cluster","kind":"texts"})",
                           R"({"column":"y","task":"binary","kind":"texts","classes":["b","a"]})",
                           R"({"column":"y","task":"binary","kind":"zero_one","classes":["a","b"]})"})
    EXPECT_THROW(labels_from_json(text, "labels.json"), UserError) << text;
}

}  // namespace
}  // namespace lockstep

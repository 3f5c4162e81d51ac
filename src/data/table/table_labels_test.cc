// Labels and weights of tables: what a model gets of them, which records are refused for them before anything
// is trained, and tables of one kind of column only.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/table/table.h"

namespace lockstep {
namespace {

constexpr int kRows = 300;

// Rows of x, c, w and a label each.
template <typename Label>
std::string table(const Label& label, int rows = kRows) {
  std::string text = "x,c,w,y\n";
  for (int i = 0; i < rows; ++i) text += fmt::format("{},k{},{},{}\n", i % 17, i % 5, 1 + i % 3, label(i));
  return text;
}

std::string colour(int i) { return i % 3 == 0 ? "red" : i % 3 == 1 ? "green" : "blue"; }

class TableLabels : public testing::Test {
 protected:
  TableLabels() {
    options_.encoding.label = "y";
    options_.encoding.ignore = {"w"};
    options_.encoding.buckets = 50;
  }
  Table open(const std::string& text) {
    folder_.write("t.csv", text);
    return open_table(options_, {folder_.path("t.csv")});
  }
  Table open_eval(const Table& train, const std::string& text) {
    folder_.write("e.csv", text);
    return open_table(options_, train, std::vector<std::string>{folder_.path("e.csv")});
  }
  template <typename Open>
  std::string refusal(const Open& open) {
    try {
      open();
    } catch (const UserError& error) {
      std::string text = error.what();
      const std::string folder = folder_.path("");
      if (const size_t at = text.find(folder); at != std::string::npos) text.erase(at, folder.size());
      return text;
    }
    return "";
  }

  TestFolder folder_;
  TableOptions options_;
};

Batch all_of(const Source& source) {
  std::vector<int64_t> records(static_cast<size_t>(source.size()));
  std::iota(records.begin(), records.end(), 0);
  Batch batch(source.columns(), source.size());
  source.fill(records, batch);
  return batch;
}

TEST_F(TableLabels, TextsBecomeClassesInTheirOrder) {
  const Table train = open(table(colour));
  EXPECT_EQ(train.encoding->encoding().labels.names(), (std::vector<std::string>{"blue", "green", "red"}));
  const Batch batch = all_of(*train.source);
  const auto labels = batch.values<int32_t>(batch.index_of("labels"));
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(labels[i], std::vector<int32_t>({2, 1, 0})[i % 3]);
  // Another file has fewer of them, and the same places.
  const Table eval = open_eval(train, "y,x,c\nred,1,k1\nblue,1,k1\n");
  const Batch other = all_of(*eval.source);
  EXPECT_EQ(other.values<int32_t>(other.index_of("labels"))[0], 2);
  EXPECT_EQ(other.values<int32_t>(other.index_of("labels"))[1], 0);
}

TEST_F(TableLabels, AreTheSameFromAnIndexThatIsKept) {
  const auto numbers = [](int i) { return fmt::format("{}", 0.5 * (i % 40)); };
  for (const std::string& text : {table(colour), table(numbers)}) {
    const Table first = open(text), second = open(text);
    EXPECT_EQ(first.encoding->fitted(), second.encoding->fitted());
    EXPECT_EQ(first.encoding->decision(), second.encoding->decision());
    EXPECT_EQ(first.encoding->encoding().labels, second.encoding->encoding().labels);
    EXPECT_EQ(first.source->fingerprint(), second.source->fingerprint());
  }
}

TEST_F(TableLabels, ATaskThatIsAskedForIsAnotherEncoding) {
  const auto five = [](int i) { return std::to_string(i % 5); };
  const Table classes = open(table(five));
  EXPECT_EQ(classes.encoding->encoding().labels.task, LabelTask::kClassification);
  options_.encoding.task = LabelTask::kRegression;
  const Table values = open(table(five));
  EXPECT_EQ(values.encoding->encoding().labels.task, LabelTask::kRegression);
  EXPECT_NE(values.source->fingerprint(), classes.source->fingerprint());
  EXPECT_EQ(values.encoding->decision(), "y: regression, as model.task says");
}

// What tables of 0 and 1 always were: their constants, and with them runs of older versions, stay.
TEST_F(TableLabels, ZeroAndOneNeedNoConstants) {
  const Table binary = open(table([](int i) { return i % 2; }));
  EXPECT_EQ(binary.encoding->fitted().find("labels"), std::string::npos);
  EXPECT_TRUE(binary.encoding->fitted().starts_with("label y\n"));
  options_.encoding.task = LabelTask::kBinary;
  EXPECT_EQ(open(table([](int i) { return i % 2; })).source->fingerprint(), binary.source->fingerprint());
}

TEST_F(TableLabels, ABadLabelIsFoundWhenTheTableIsOpened) {
  const auto label = [](int i) { return i == 250 ? "maybe" : i % 2 == 0 ? "0" : "1"; };
  EXPECT_EQ(refusal([&] { open(table(label)); }), "t.csv:252: the label 'y' is 'maybe'; it must be 0 or 1");
  options_.encoding.hold_out = 0.2;  // 250 is held out: no fit sees it
  EXPECT_EQ(refusal([&] { open(table(label)); }), "t.csv:252: the label 'y' is 'maybe'; it must be 0 or 1");
  options_.encoding.hold_out = 0;
  options_.split = TableSplit{"x", 0.4, 1};
  EXPECT_EQ(refusal([&] { open(table(label)); }), "t.csv:252: the label 'y' is 'maybe'; it must be 0 or 1");
  options_.split.reset();
  const Table train = open(table([](int i) { return i % 2; }));
  EXPECT_EQ(refusal([&] { open_eval(train, table(label)); }),
            "e.csv:252: the label 'y' is 'maybe'; it must be 0 or 1");
  options_.filter = "y != 'maybe'";
  EXPECT_EQ(open_eval(train, table(label)).source->size(), kRows - 1);
}

TEST_F(TableLabels, AClassThatNoTrainingRecordHasIsRefused) {
  const Table train = open(table(colour));
  EXPECT_EQ(refusal([&] { open_eval(train, table([](int i) { return i == 7 ? "pink" : colour(i); })); }),
            "e.csv:9: the label 'y' is 'pink'; it must be one that training records have: blue, green, red");
  options_.encoding.hold_out = 0.1;
  EXPECT_EQ(
      refusal([&] { open(table([](int i) { return i == 299 ? "pink" : colour(i); })); }),
      "t.csv:301: the label 'y' is 'pink'; it must be one that training records have: blue, green, red");
}

TEST_F(TableLabels, SkippingCoversLabels) {
  const auto label = [](int i) { return i == 7 || i == 250 ? "maybe" : i % 2 == 0 ? "0" : "1"; };
  std::string without = "x,c,w,y\n";
  for (int i = 0; i < kRows; ++i)
    if (i != 7 && i != 250) without += fmt::format("{},k{},{},{}\n", i % 17, i % 5, 1 + i % 3, i % 2);
  options_.bad = BadRecords::kSkip;
  options_.most_bad = 0.01;
  const Table skipped = open(table(label));
  EXPECT_EQ(skipped.source->size(), kRows - 2);
  const std::string constants = skipped.encoding->fitted();
  const Batch batch = all_of(*skipped.source);
  const Table clean = open(without);
  EXPECT_EQ(clean.encoding->fitted(), constants);
  const Batch expected = all_of(*clean.source);
  for (size_t c = 0; c < expected.columns().size(); ++c) {
    const auto bytes = static_cast<size_t>(expected.bytes(c));
    ASSERT_EQ(static_cast<size_t>(batch.bytes(c)), bytes);
    EXPECT_EQ(std::memcmp(batch.data(c), expected.data(c), bytes), 0) << expected.columns()[c].name;
  }
  EXPECT_EQ(open_eval(clean, table(label)).source->size(), kRows - 2);
  options_.most_bad = 0.001;
  EXPECT_EQ(
      refusal([&] { open(table(label)); }),
      "2 of 300 records cannot be used, more than the share of 0.001 that is allowed; the first: t.csv:9: "
      "the label 'y' is 'maybe'; it must be 0 or 1");
}

TEST_F(TableLabels, SkippingWithoutABadLabelChangesNothing) {
  options_.bad = BadRecords::kSkip;
  options_.most_bad = 0.5;
  options_.filter = "y is not missing";
  const Table some = open(table([](int i) { return i == 9 ? "" : std::to_string(i % 2); }));
  EXPECT_EQ(some.source->size(), kRows - 1);
  options_.encoding.label = "x";  // all of these are there
  options_.encoding.ignore = {"w", "y"};
  options_.encoding.task = LabelTask::kClassification;
  options_.filter.clear();
  EXPECT_EQ(open(table(colour)).source->files()->selected(), nullptr);
}

TEST_F(TableLabels, WeightsComeFromTheirColumn) {
  options_.encoding.ignore.clear();
  options_.encoding.weight = "w";
  const Table train = open(table(colour));
  ASSERT_EQ(train.encoding->encoding().numeric.size(), 1u) << "the weight is no feature";
  const Batch batch = all_of(*train.source);
  const auto weights = batch.values<float>(batch.index_of("weights"));
  double sum = 0;
  for (const float weight : weights) sum += static_cast<double>(weight);
  EXPECT_NEAR(sum, kRows, 1e-4);
  EXPECT_FLOAT_EQ(weights[2] / weights[0], 3);
  // Evaluation has none, also in files without the column.
  const Table eval = open_eval(train, "y,x,c\nred,1,k1\n");
  EXPECT_EQ(eval.source->columns().back().name, "labels");
  options_.encoding.numeric = {"w"};
  EXPECT_NE(refusal([&] { open(table(colour)); }).find("it cannot be a feature as well"), std::string::npos);
}

TEST_F(TableLabels, WeightsOfClassesMultiplyThem) {
  options_.encoding.ignore.clear();
  options_.encoding.weight = "w";
  options_.encoding.class_weights.of = {{"red", 4.0}};
  const Table train = open(table(colour));
  const Batch batch = all_of(*train.source);
  const auto weights = batch.values<float>(batch.index_of("weights"));
  // Record 0 is red and has weight 1, record 1 green and weight 2.
  EXPECT_FLOAT_EQ(weights[0] / weights[1], 2);
  options_.subsample = TableSubsample{.where = "y == 'blue'", .keep = 0.5};
  const Table fewer = open(table(colour));
  EXPECT_LT(fewer.source->size(), kRows);
  const std::vector<Column> columns = fewer.source->columns();
  EXPECT_EQ(std::count_if(columns.begin(), columns.end(),
                          [](const Column& column) { return column.name == "weights"; }),
            1);
}

TEST_F(TableLabels, AWeightThatIsNoneIsRefusedOrSkipped) {
  options_.encoding.ignore.clear();
  options_.encoding.weight = "w";
  std::string text = table(colour);
  text += "1,k1,-2,red\n";
  EXPECT_EQ(refusal([&] { open(text); }),
            "t.csv:302: the weight 'w' is -2; it must be a number of at least 0");
  options_.bad = BadRecords::kSkip;
  options_.most_bad = 0.1;
  EXPECT_EQ(open(text).source->size(), kRows);
}

TEST_F(TableLabels, TablesOfOneKindOfColumn) {
  options_.encoding.ignore = {"w", "c"};
  const Table numbers = open(table(colour));
  EXPECT_EQ(numbers.source->columns().size(), 2u);
  EXPECT_EQ(numbers.source->columns()[0].name, "dense");
  options_.encoding.ignore = {"w", "x"};
  const Table categories = open(table(colour));
  EXPECT_EQ(categories.source->columns()[0].name, "category.0");
  EXPECT_EQ(categories.source->columns()[1].name, "labels");
  options_.encoding.ignore = {"w", "x", "c"};
  EXPECT_NE(refusal([&] { open(table(colour)); }).find("no column holds anything to learn from"),
            std::string::npos);
}

TEST_F(TableLabels, ALabelThatATransformMakesIsTakenToo) {
  options_.transforms = {{"cast", {{"columns", {"y"}}, {"to", {"text"}}}}};
  const Table texts = open(table([](int i) { return i % 2; }));
  EXPECT_EQ(texts.encoding->encoding().labels.kind, LabelKind::kTexts);
  EXPECT_EQ(texts.encoding->encoding().labels.names(), (std::vector<std::string>{"0", "1"}));
}

}  // namespace
}  // namespace lockstep

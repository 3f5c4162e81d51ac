// What is counted of a column is the same however its records are divided, and says when the column alone
// decides the label.
#include "data/table/column_tally.h"

#include <gtest/gtest.h>

#include <cmath>

#include "data/table/table_report.h"
#include "data/testing/test_columns.h"

namespace lockstep {
namespace {

struct Counted {
  ColumnTally column;
  LabelTally labels;
  ColumnFacts facts() const { return column.facts(labels); }
};

Counted count(const BlockColumn& column, const BlockColumn& label, bool parses = false) {
  const auto records = std::visit([](const auto& values) { return values.size(); }, column.values);
  Counted counted;
  BlockLabels labels;
  labels.set(&label, records);
  counted.labels.add(labels);
  counted.column.add(column, records, labels, parses);
  return counted;
}

std::vector<double> numbers(int count, const std::function<double(int)>& value) {
  std::vector<double> all;
  for (int i = 0; i < count; ++i) all.push_back(value(i));
  return all;
}

ColumnFacts facts_of(const std::vector<double>& values, const std::vector<double>& labels) {
  return count(number_column("x", values), number_column("y", labels)).facts();
}

TEST(ColumnTally, CountsMissingRangeAndDifferentValues) {
  const ColumnFacts facts = facts_of({3, kNoNumber, -1.5, 3, 0, -0.0}, {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(facts.records, 6);
  EXPECT_EQ(facts.missing, 1);
  EXPECT_EQ(facts.distinct, 3);
  EXPECT_EQ(facts.smallest, -1.5);
  EXPECT_EQ(facts.largest, 3);
  EXPECT_EQ(facts_text(facts), "-1.5 to 3, 16.7 % missing, 3 different values");
  const BlockColumn texts = text_column("c", {"a", "None", "b", "a", std::nullopt, "?"});
  EXPECT_EQ(facts_text(count(texts, texts).facts()), "50 % missing, 2 different values");
  const BlockColumn digits = text_column("c", {"7", "-2", ""});
  EXPECT_FALSE(count(digits, digits).facts().smallest);
  EXPECT_EQ(count(digits, digits, true).facts().smallest, -2);
}

TEST(ColumnTally, ManyDifferentValuesAreEstimated) {
  for (const int distinct : {1024, 1025, 5000, 200'000}) {
    const ColumnFacts facts = facts_of(numbers(200'000, [&](int i) { return i % distinct; }),
                                       numbers(200'000, [](int i) { return i % 2; }));
    EXPECT_EQ(facts.exact, distinct <= 1024);
    EXPECT_NEAR(static_cast<double>(facts.distinct), distinct, facts.exact ? 0 : 0.07 * distinct) << distinct;
  }
}

TEST(ColumnTally, DoesNotDependOnHowRecordsAreDivided) {
  for (const int distinct : {10, 1500}) {
    std::vector<double> values = numbers(6000, [&](int i) { return i * 7919 % distinct; });
    values[100] = kNoNumber;
    const std::vector<double> labels =
        numbers(6000, [&](int i) { return values[static_cast<size_t>(i)] > 4 ? 1 : 0; });
    const ColumnFacts whole = facts_of(values, labels);
    for (const int part : {499, 999, 3000}) {
      Counted all;
      for (int first = 0; first < 6000; first += part) {
        const auto some = [&](const std::vector<double>& of) {
          return std::vector<double>(of.begin() + first, of.begin() + std::min(first + part, 6000));
        };
        const Counted next = count(number_column("x", some(values)), number_column("y", some(labels)));
        all.column.merge(next.column);
        all.labels.merge(next.labels);
      }
      EXPECT_EQ(all.facts(), whole) << part;
    }
  }
}

TEST(ColumnTally, AColumnThatDecidesTheLabelIsFound) {
  const std::vector<double> labels = numbers(1000, [](int i) { return i % 10 == 0 ? 1 : 0; });
  const auto decides = [&](const std::function<double(int)>& value) {
    return facts_of(numbers(1000, value), labels).decides_label;
  };
  EXPECT_TRUE(decides([](int i) { return i % 10; })) << "a value stands for a label";
  EXPECT_TRUE(decides([](int i) { return i % 10 == 0 ? kNoNumber : i % 3; })) << "being missing does, too";
  EXPECT_FALSE(decides([](int i) { return i % 7; }));
  EXPECT_FALSE(decides([](int i) { return i; })) << "values that do not repeat decide nothing";
  EXPECT_FALSE(decides([](int) { return 5; }));
  // Texts, and classes by name.
  std::vector<std::optional<std::string_view>> kinds, classes;
  for (int i = 0; i < 300; ++i) {
    kinds.emplace_back(i % 3 == 0 ? "chargeback" : i % 3 == 1 ? "sale" : "refund");
    classes.emplace_back(i % 3 == 0 ? "fraud" : "fine");
  }
  EXPECT_TRUE(count(text_column("c", kinds), text_column("y", classes)).facts().decides_label);
}

TEST(ColumnTally, ManyNumbersDecideByAThresholdOrByBeingTheLabel) {
  const auto many = [](const std::function<double(int)>& value, const std::function<double(int)>& label) {
    return facts_of(numbers(5000, value), numbers(5000, label)).decides_label;
  };
  EXPECT_TRUE(many([](int i) { return i; }, [](int i) { return i >= 4000 ? 1 : 0; }));
  EXPECT_FALSE(many([](int i) { return i == 4999 ? 3 : i; }, [](int i) { return i >= 4000 ? 1 : 0; }));
  EXPECT_FALSE(many([](int i) { return i; }, [](int i) { return i >= 4995 ? 1 : 0; })) << "too few to tell";
  EXPECT_TRUE(many([](int i) { return i * 0.25; }, [](int i) { return i * 0.25; }));
  EXPECT_FALSE(many([](int i) { return i * 0.25; }, [](int i) { return i == 7 ? 1 : i * 0.25; }));
}

TEST(ColumnTally, OneLabelIsDecidedByNothing) {
  EXPECT_FALSE(facts_of(numbers(1000, [](int i) { return i % 5; }), numbers(1000, [](int) { return 1; }))
                   .decides_label);
}

TEST(ColumnTally, FactsAreReadBackFromTheirText) {
  const std::vector<ColumnFacts> facts{
      {.records = 100, .missing = 3, .distinct = 12, .smallest = -0.1, .largest = 1e30},
      {.records = 100, .distinct = 90, .exact = false, .decides_label = true}};
  const std::string text = to_text(facts);
  EXPECT_EQ(parse_facts(text, 2), facts);
  EXPECT_EQ(parse_facts(text, 1), std::nullopt);
  EXPECT_EQ(parse_facts(text, 3), std::nullopt);
  EXPECT_EQ(parse_facts("100 3 x\n", 1), std::nullopt);
}

TEST(TableReport, AShareThatIsThereIsNotShownAsNone) {
  EXPECT_EQ(facts_text({.records = 1'000'000, .missing = 1, .distinct = 1}),
            "1 of 1000000 missing, 1 different value");
}

}  // namespace
}  // namespace lockstep

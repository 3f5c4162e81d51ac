// Which texts mean a missing value, and what becomes of them on the way to the model.
#include "data/format/missing_texts.h"

#include <gtest/gtest.h>

#include "data/select/filter.h"
#include "data/testing/test_columns.h"
#include "data/transform/column_values.h"

namespace lockstep {
namespace {

const MissingTexts kOwn({"unknown", "-999"});

BlockColumn with_own(BlockColumn column) {
  column.missing_texts = &kOwn;
  return column;
}

TEST(MissingTexts, TheUsualOnes) {
  for (const char* text :
       {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None", "-", "?"})
    EXPECT_TRUE(usual_missing_texts().has(text)) << text;
  for (const char* text : {"0", "none at all", "N", "--", "-1", "??", " ", " NA", "Na"})
    EXPECT_FALSE(usual_missing_texts().has(text)) << text;
  EXPECT_TRUE(usual_missing_texts().has_for_number(" NA "));
  EXPECT_TRUE(usual_missing_texts().has_for_number("   "));
  EXPECT_FALSE(usual_missing_texts().has_for_number(" 1 "));
}

TEST(MissingTexts, ThoseOfAJobStandInPlaceOfTheUsualOnes) {
  EXPECT_TRUE(kOwn.has("-999"));
  EXPECT_TRUE(kOwn.has(""));
  EXPECT_FALSE(kOwn.has("NA"));
  EXPECT_FALSE(no_missing_texts().has("-"));
}

TEST(MissingTexts, CategoriesAndFiltersGoByTheirColumn) {
  const BlockColumn usual = text_column("c", {"NA", "None", "unknown", ""});
  const auto present = [](const BlockColumn& column) {
    std::string text;
    for_each_category(column, 4, [&](size_t, std::string_view word) { text += word.empty() ? "-" : "+"; });
    return text;
  };
  EXPECT_EQ(present(usual), "--+-");
  EXPECT_EQ(present(with_own(usual)), "++--");
  const Filter filter("c is missing");
  EXPECT_EQ(filter.matches(block_of({usual}), false), (std::vector<uint8_t>{1, 1, 0, 1}));
  EXPECT_EQ(filter.matches(block_of({with_own(usual)}), false), (std::vector<uint8_t>{0, 0, 1, 1}));
}

TEST(MissingTexts, TransformsKeepThoseOfTheColumnTheyRead) {
  const BlockColumn column = with_own(text_column("c", {"NA", "unknown", "7"}));
  const TransformOptions cast{"cast", {{"columns", {"c"}}, {"to", {"f64"}}, {"invalid", {"missing"}}}};
  EXPECT_EQ(values_of(transformed(cast, {column}), "c"), "- - 7");
  const TransformOptions strict{"cast", {{"columns", {"c"}}, {"to", {"f64"}}}};
  EXPECT_NE(problem_with([&] { transformed(strict, {column}); }).find("'NA'"), std::string::npos)
      << "NA means something here";
  const TransformOptions text{"cast", {{"columns", {"c"}}, {"to", {"text"}}, {"as", {"d"}}}};
  EXPECT_EQ(transformed(text, {column}).column("d").missing_texts, &kOwn);
  // What fills is a value, also where it looks like none.
  const TransformOptions fill{"fill", {{"columns", {"c"}}, {"value", {"-"}}}};
  const ColumnBlock filled = transformed(fill, {column});
  EXPECT_EQ(values_of(filled, "c"), "NA - 7");
  for_each_category(filled.column("c"), 3, [](size_t, std::string_view word) { EXPECT_FALSE(word.empty()); });
}

}  // namespace
}  // namespace lockstep

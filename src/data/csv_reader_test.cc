// RFC 4180, record by record, and where its errors point.
#include "data/csv_reader.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

using Records = std::vector<std::vector<std::string>>;

Records read(std::string_view text) {
  CsvReader reader("t.csv", text);
  Records records;
  std::vector<std::string_view> fields;
  while (reader.next(fields)) records.emplace_back(fields.begin(), fields.end());
  return records;
}

std::string error_of(std::string_view text) {
  try {
    read(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(CsvReader, PlainFields) {
  EXPECT_EQ(read("a,b\n1,\n,2\n"), (Records{{"a", "b"}, {"1", ""}, {"", "2"}}));
  EXPECT_EQ(read("a,b\r\n1,2\r\n"), (Records{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(read("a\nlast"), (Records{{"a"}, {"last"}}));
  EXPECT_EQ(read("a,"), (Records{{"a", ""}}));
  EXPECT_EQ(read("a\rb"), (Records{{"a\rb"}}));
  EXPECT_EQ(read(""), Records{});
}

TEST(CsvReader, QuotedFields) {
  EXPECT_EQ(read("\"a,b\",\"c\nd\",\"\"\n"), (Records{{"a,b", "c\nd", ""}}));
  EXPECT_EQ(read("\"say \"\"hi\"\"\",\"\"\"\"\n"), (Records{{"say \"hi\"", "\""}}));
  EXPECT_EQ(read("\"end\""), (Records{{"end"}}));
}

TEST(CsvReader, SkipsBlankLinesAndTheByteOrderMark) {
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "a\n\n\r\nb\n\n"),
            (Records{{"a"}, {"b"}}));
}

TEST(CsvReader, CountsLinesInsideQuotes) {
  CsvReader reader("t.csv", "a\n\"x\ny\nz\"\nb\n");
  std::vector<std::string_view> fields;
  std::vector<int64_t> lines;
  while (reader.next(fields)) lines.push_back(reader.line());
  EXPECT_EQ(lines, (std::vector<int64_t>{1, 2, 5}));
}

TEST(CsvReader, ErrorsNameFileAndLine) {
  EXPECT_TRUE(
      error_of("a\nb,\"open\nand on").starts_with("t.csv:2: the quote that opens here is never closed"));
  EXPECT_TRUE(error_of("a\n\"b\"c\n").starts_with("t.csv:2: text follows a closing quote"));
  EXPECT_TRUE(error_of("a\nb\nc\"d\n").starts_with("t.csv:3: a quote inside a field"));
}

}  // namespace
}  // namespace lockstep

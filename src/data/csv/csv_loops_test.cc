// The loops over CSV give what reading byte by byte gives.
#include "data/csv/csv_loops.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "data/csv/csv_scan.h"

namespace lockstep {
namespace {

struct Found {
  std::vector<uint32_t> ends, lines;
  bool quotes = false, open_quote = false, non_ascii = false;

  bool operator==(const Found&) const = default;
};

Found by_bytes(std::string_view text, char separator) {
  Found found;
  bool inside = false;
  for (uint32_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    found.non_ascii = found.non_ascii || static_cast<unsigned char>(c) >= 0x80;
    if (c == '"') {
      inside = !inside;
      found.quotes = true;
    }
    if (inside || (c != separator && c != '\n')) continue;
    found.ends.push_back(i);
    if (c == '\n') found.lines.push_back(static_cast<uint32_t>(found.ends.size()));
  }
  found.open_quote = inside;
  return found;
}

Found by_loops(const CsvLoops& loops, std::string_view text, char separator) {
  std::string padded(text);
  padded.append(64, ',');
  std::vector<uint32_t> ends(text.size() + 16), lines(text.size() + 16);
  CsvMarks marks{.ends = ends.data(), .lines = lines.data()};
  loops.scan(padded.data(), text.size(), separator, marks);
  ends.resize(marks.end_count);
  lines.resize(marks.line_count);
  return {ends, lines, marks.quotes, marks.open_quote, marks.non_ascii};
}

// Those of this processor and the portable ones.
class CsvLoopsTest : public testing::TestWithParam<const CsvLoops* (*)()> {
 protected:
  const CsvLoops& loops() const { return *GetParam()(); }
};
INSTANTIATE_TEST_SUITE_P(All, CsvLoopsTest,
                         testing::Values([] { return &csv_loops(); }, [] { return &portable_csv_loops(); }));

TEST_P(CsvLoopsTest, ScanAsByteByByte) {
  std::mt19937 random(3);
  // Mostly plain, mostly separators, and everything.
  for (const std::string_view letters : {"abcdefgh,\n", ",,,\n", "a,\n\"", "ab;,\n\"\xc3\xa9"})
    for (int i = 0; i < 300; ++i) {
      std::string text(random() % 300, ' ');
      for (char& c : text) c = letters[random() % letters.size()];
      for (const char separator : {',', ';'})
        ASSERT_EQ(by_loops(loops(), text, separator), by_bytes(text, separator)) << text;
    }
}

// A column of these fields, each on a line of its own behind another field.
struct CsvText {
  std::string text;
  CsvScan scan;
  std::vector<uint32_t> fields;

  explicit CsvText(const std::vector<std::string>& values) {
    for (const std::string& value : values) text += "x," + value + "\n";
    const size_t size = text.size();
    text.append(64, '7');
    scan.look(std::string_view(text).substr(0, size), ',', true);
    for (size_t i = 0; i < values.size(); ++i) fields.push_back(scan.first_field(i));
  }
  CsvColumn column() const {
    return {.text = text.data(),
            .size = text.size() - 64,
            .marks = scan.marks(),
            .fields = fields.data(),
            .records = fields.size(),
            .place = 1,
            .last = true};
  }
};

template <typename T>
void expect_as_the_library(const std::vector<std::string>& values,
                           size_t (*read)(const CsvColumn&, T*, uint32_t*)) {
  const CsvText column(values);
  std::vector<T> numbers(values.size());
  std::vector<uint32_t> left(values.size());
  left.resize(read(column.column(), numbers.data(), left.data()));
  size_t next = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (next < left.size() && left[next] == i) {
      ++next;
      continue;
    }
    std::string_view field = values[i];
    if (field.ends_with('\r')) field.remove_suffix(1);
    T expected{};
    const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), expected);
    ASSERT_TRUE(failure == std::errc() && end == field.data() + field.size()) << field;
    ASSERT_EQ(std::memcmp(&numbers[i], &expected, sizeof expected), 0) << field << " " << numbers[i];
  }
  ASSERT_EQ(next, left.size());
}

std::vector<std::string> fields_of(std::string_view letters, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::string> values(1 + random() % kCsvRows);
  for (std::string& value : values) {
    value.resize(random() % 20);
    for (char& c : value) c = letters[random() % letters.size()];
    if (random() % 3 == 0) value.insert(0, "-");
    if (random() % 8 == 0) value += '\r';
  }
  return values;
}

TEST_P(CsvLoopsTest, NumbersAsTheLibraryReadsThem) {
  for (uint32_t seed = 0; seed < 300; ++seed)
    for (const std::string_view letters : {"0123456789", "0123456789.", "012.-e+ /:"}) {
      expect_as_the_library<double>(fields_of(letters, seed), loops().reals);
      expect_as_the_library<int64_t>(fields_of(letters, seed), loops().wholes);
    }
}

TEST(CsvLoops, PlainNumbersAreNotLeft) {
  if (&csv_loops() != &avx2_csv_loops()) GTEST_SKIP() << "this processor has no AVX2";
  const std::vector<std::string> values{"0",   "-0",         "7",       "-12.5",           ".5",  "-.25",
                                        "1.0", "123456.789", "0.00001", "123456789012345", "5\r", "-99.5\r"};
  const CsvText column(values);
  std::vector<double> numbers(values.size());
  std::vector<uint32_t> left(values.size());
  EXPECT_EQ(csv_loops().reals(column.column(), numbers.data(), left.data()), 0u);
  EXPECT_EQ(numbers[3], -12.5);
  EXPECT_EQ(numbers[11], -99.5);
}

}  // namespace
}  // namespace lockstep

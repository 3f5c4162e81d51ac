#include "base/printable.h"

#include <gtest/gtest.h>

#include <ostream>
#include <sstream>

namespace lockstep {
namespace {

TEST(Printable, ControlCharactersAreShownAsQuestionMarks) {
  EXPECT_EQ(printable("a\x1b[2Jb\x07\r\x7f"), "a?[2Jb???");
  EXPECT_EQ(printable("two\nlines\tand a tab"), "two lines and a tab");
  EXPECT_EQ(printable_lines("two\nlines\tand \x1b]0;t\x07"), "two\nlines\tand ?]0;t?");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "?x");
}

// C1 controls, as terminals take them from UTF-8 and from single bytes; overrides of direction.
TEST(Printable, SoAreThoseBeyondAscii) {
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2J"),
            "a?2J");
  EXPECT_EQ(printable("a\x9b"
                      "2J"),
            "a?2J");
  EXPECT_EQ(printable("txt.\xe2\x80\xae"
                      "exe"),
            "txt.?exe");
  EXPECT_EQ(printable("\xe2\x81\xa6x\xe2\x80\xa8y"), "?x?y");
}

TEST(Printable, TextOfAnyLanguageStays) {
  for (const std::string_view text : {"Zürich", "данные", "数据", "🙂 e\xcc\x81", "a b"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, WhatIsNoTextIsNotShown) {
  EXPECT_EQ(printable("caf\xe9"), "caf?");
  EXPECT_EQ(printable("\xc3("), "?(");
  EXPECT_EQ(printable("\xed\xa0\x80"), "?");
  EXPECT_EQ(printable("\xe0\x80\x9b"), "?");
  EXPECT_EQ(printable("\xf0\x9f\x99"), "???");
}

TEST(Printable, ABufferPassesOnTheSameInAnyPieces) {
  const std::string text = "a\x1b[2J Zürich 🙂\n\xc2\x9b!\t.";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    std::stringbuf shown;
    PrintableBuffer buffer(shown);
    std::ostream out(&buffer);
    for (size_t at = 0; at < text.size(); at += piece) out << text.substr(at, piece) << std::flush;
    EXPECT_EQ(shown.str(), "a?[2J Zürich 🙂\n?!\t.") << piece;
  }
}

}  // namespace
}  // namespace lockstep

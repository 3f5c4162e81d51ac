#include "use/generate.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace lockstep {
namespace {

std::string through(StopText& stop, std::initializer_list<const char*> parts) {
  std::string shown;
  for (const char* part : parts) shown += stop.push(part) + "|";
  return shown + stop.finish();
}

TEST(StopText, EndsBeforeTheFirstOfTheTexts) {
  StopText stop({"END", "\n\n"});
  EXPECT_EQ(through(stop, {"one ", "two END three"}), "one |two |");
  EXPECT_TRUE(stop.stopped());
}

TEST(StopText, HoldsBackWhatCouldBeTheBeginningOfOne) {
  StopText stop({"<end>"});
  EXPECT_EQ(through(stop, {"a <", "en", "ough <e"}), "a ||<enough |<e");
  EXPECT_FALSE(stop.stopped());
  StopText another({"abab"});
  EXPECT_EQ(through(another, {"ab", "xab", "ab!"}), "|abx||");
  EXPECT_TRUE(another.stopped());
}

TEST(TokenText, BytesWaitForTheRestOfTheirCharacter) {
  const auto text = make_byte_text();
  EXPECT_EQ(text->encode("h\xC3\xA9"), (std::vector<int32_t>{0x68, 0xC3, 0xA9}));
  EXPECT_EQ(text->push(0xE2), "");
  EXPECT_EQ(text->push(0x82), "");
  EXPECT_EQ(text->push(0xAC), "\xE2\x82\xAC");
  EXPECT_EQ(text->push('a'), "a");
  // No character: one U+FFFD for the bytes that could have begun one.
  EXPECT_EQ(text->push(0xE2), "");
  EXPECT_EQ(text->push('b'),
            "\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(text->push(0xFF), "\xEF\xBF\xBD");
  EXPECT_EQ(text->push(0xC0), "\xEF\xBF\xBD");
  EXPECT_EQ(text->push(0xED), "");
  EXPECT_EQ(text->push(0xA0), "\xEF\xBF\xBD\xEF\xBF\xBD");  // a surrogate
  EXPECT_EQ(text->push(0xF0), "");
  EXPECT_EQ(text->finish(), "\xEF\xBF\xBD");
}

TEST(TokenText, NumbersAreThoseOfTheVocabulary) {
  const auto text = make_id_text(100);
  EXPECT_EQ(text->encode(" 1, 17\n99 "), (std::vector<int32_t>{1, 17, 99}));
  EXPECT_TRUE(text->encode("").empty());
  for (const char* bad : {"100", "-1", "1.5", "a", "1 2x", "99999999999999999999"})
    EXPECT_THROW(text->encode(bad), UserError) << bad;
  EXPECT_EQ(text->push(5), "5");
  EXPECT_EQ(text->push(6), " 6");
}

TEST(CachedDecoder, PadsToFewLengths) {
  EXPECT_EQ(CachedDecoder::padded(1), 1);
  EXPECT_EQ(CachedDecoder::padded(2), 2);
  EXPECT_EQ(CachedDecoder::padded(33), 64);
  EXPECT_EQ(CachedDecoder::padded(65), 128);
  EXPECT_EQ(CachedDecoder::padded(129), 192);
}

}  // namespace
}  // namespace lockstep

// The parts of a tokenizer against slow and obvious ones.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/error.h"
#include "tokenizer/merging.h"
#include "tokenizer/pattern.h"
#include "tokenizer/scanners.h"
#include "tokenizer/trie.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/utf8.h"

namespace lockstep::tok {
namespace {

// Characters on which the patterns differ, and some of every kind.
std::string random_text(std::mt19937& random, size_t chars) {
  static const std::u32string kAlphabet =
      U"aaabzsStTdDmMlLrReEvVſ''''' "
      U"\u0020\u0020\t\n\n\r.,!?/"
      U"-_0123ÄäǅʰªאαΑ字あ한٣Ⅷ½\u0301\u0308\u093e\u00a0\u3000\u2028\U0001F600\U0001D400\x1c\x85\u0378";
  std::u32string text;
  for (size_t i = 0; i < chars; ++i) text.push_back(kAlphabet[random() % kAlphabet.size()]);
  return from_chars(text);
}

TEST(Scanners, CutAsTheirPatterns) {
  std::mt19937 random(5);
  for (const std::string_view pattern :
       {kGpt2Pattern, kLlama3Pattern, kQwen2Pattern, kTekkenPattern, kCl100kPattern, kO200kPattern}) {
    const Scanner scanner = scanner_for(pattern);
    ASSERT_NE(scanner, nullptr);
    const Pattern regex = Pattern::regex(pattern, "test");
    for (int i = 0; i < 1500; ++i) {
      const std::string text = random_text(random, 1 + random() % 30);
      const TextRange whole{0, static_cast<uint32_t>(text.size())};
      std::vector<TextRange> words, matches;
      scanner(text, whole, words);
      regex.find_all(text, whole, matches);
      std::string ours, theirs;
      for (const auto [begin, end] : words) ours += text.substr(begin, end - begin) + "|";
      for (const auto [begin, end] : matches) theirs += text.substr(begin, end - begin) + "|";
      ASSERT_EQ(ours, theirs) << pattern;
    }
  }
}

TEST(Merging, FewAndManyAgree) {
  std::mt19937 random(6);
  for (int round = 0; round < 300; ++round) {
    PairMerges merges;
    uint32_t next = 4;
    for (uint32_t rank = 0; rank < 60; ++rank)
      merges.set(random() % next, random() % next, {rank, next}), ++next;
    ModelScratch few, many;
    for (size_t i = 0; i < 2 + random() % 90; ++i) few.symbols.push_back(random() % 4);
    for (size_t i = 0; i < few.symbols.size(); ++i) few.starts.push_back(static_cast<uint32_t>(i));
    many = few;
    const auto ignore = [](uint32_t, uint32_t, uint32_t) {};
    merge_few<true>(merges, few, ignore);
    merge_many<true>(merges, many, ignore);
    ASSERT_EQ(few.symbols, many.symbols);
    ASSERT_EQ(few.starts, many.starts);
  }
}

TEST(Trie, HasWhatAMapHas) {
  std::mt19937 random(7);
  std::map<std::string, int32_t> map;
  for (int i = 0; i < 5000; ++i) {
    std::string key;
    for (size_t j = 0; j < 1 + random() % 6; ++j)
      key.push_back(static_cast<char>(random() % 8 ? 'a' + random() % 5 : random()));
    map[key] = i;
  }
  std::vector<std::pair<std::string_view, int32_t>> strings(map.begin(), map.end());
  const Trie trie(strings);
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (size_t j = 0; j < random() % 9; ++j)
      text.push_back(static_cast<char>(random() % 8 ? 'a' + random() % 5 : random()));
    std::pair<size_t, int32_t> longest{0, Trie::kNone};
    for (size_t bytes = 1; bytes <= text.size(); ++bytes) {
      if (const auto found = map.find(text.substr(0, bytes)); found != map.end())
        longest = {bytes, found->second};
    }
    ASSERT_EQ(trie.longest(text), longest);
  }
  EXPECT_EQ(Trie().longest("a").first, 0u);
}

TEST(Utf8, ReplacesMaximalSubparts) {
  EXPECT_EQ(with_replacements("a\xE2\x96z"), "a\uFFFDz");
  EXPECT_EQ(with_replacements("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(with_replacements("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(with_replacements("\xC0\xAF\xFF"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_TRUE(is_utf8("aaaaaaaaa\u00e9\U0001F600"));
  EXPECT_FALSE(is_utf8("aaaaaaaa\xE9"));
}

TEST(NormalForms, ComposeAndDecompose) {
  EXPECT_EQ(normalized("e\u0301x", NormalForm::kNfc), "\u00e9x");
  EXPECT_EQ(normalized("\u00e9", NormalForm::kNfd), "e\u0301");
  EXPECT_EQ(normalized("\u1100\u1161\u11a8", NormalForm::kNfc), "\uac01");
  EXPECT_EQ(normalized("\uac01", NormalForm::kNfd), "\u1100\u1161\u11a8");
  EXPECT_EQ(normalized("a\u0323\u0307", NormalForm::kNfc), "\u1ea1\u0307");
  EXPECT_EQ(normalized("a\u0307\u0323", NormalForm::kNfd), "a\u0323\u0307");
  EXPECT_EQ(normalized("\ufb01\u2460", NormalForm::kNfkc), "fi1");
  EXPECT_EQ(lowercased("\u0130\u03a3A"), "i\u0307\u03c3a");
}

}  // namespace
}  // namespace lockstep::tok

// What a file may ask for and what it may not; the golden ids are in tests/golden.
#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_folder.h"

namespace lockstep {
namespace {

// Over the letters a to d, with the merges ab and abc.
std::string with(const std::string& more, const std::string& model = "") {
  return R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"d":3,"ab":4,"abc":5,"<u>":6},"merges":["a b",["ab","c"]])" +
         model + "}" + more + "}";
}

std::vector<int32_t> ids_of(const std::string& file, std::string_view text) {
  return Tokenizer::from_json(file, "tokenizer.json")->encode(text, true);
}

std::string error_of(const std::string& file) {
  try {
    Tokenizer::from_json(file, "tokenizer.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

using Ids = std::vector<int32_t>;

TEST(Tokenizer, MergesByRankFromTheLeft) {
  EXPECT_EQ(ids_of(with(""), "abcab"), (Ids{5, 4}));
  EXPECT_EQ(ids_of(with(""), "aabbc"), (Ids{0, 4, 1, 2}));
  // A character that the vocabulary lacks vanishes where there is no unknown token, and its neighbours meet.
  EXPECT_EQ(ids_of(with(""), "axbc"), (Ids{5}));
  EXPECT_EQ(ids_of(with("", R"(,"unk_token":"<u>")"), "axxb"), (Ids{0, 6, 6, 1}));
  EXPECT_EQ(ids_of(with("", R"(,"unk_token":"<u>","fuse_unk":true)"), "axxb"), (Ids{0, 6, 1}));
}

TEST(Tokenizer, AddedTokensAreFoundFirst) {
  const std::string added =
      R"(,"added_tokens":[{"id":7,"content":"<x>","lstrip":true,"rstrip":true,"special":true},)"
      R"({"id":8,"content":"ba","single_word":true}])";
  EXPECT_EQ(ids_of(with(added), "a <x> b"), (Ids{0, 7, 1}));
  EXPECT_EQ(ids_of(with(added), "ba"), (Ids{8}));
  EXPECT_EQ(ids_of(with(added), "baa"), (Ids{1, 0, 0}));
  const auto tokenizer = Tokenizer::from_json(with(added), "tokenizer.json");
  EXPECT_EQ(tokenizer->vocab_size(), 9);
  EXPECT_EQ(tokenizer->id_of("<x>"), 7);
  EXPECT_EQ(tokenizer->token_of(8), "ba");
  EXPECT_TRUE(tokenizer->is_special(7));
  EXPECT_FALSE(tokenizer->is_special(8));
  EXPECT_EQ(tokenizer->decode(Ids{0, 7, 8, 99}, true), "a ba");
  EXPECT_EQ(tokenizer->decode(Ids{0, 7, 8}, false), "a <x> ba");
}

TEST(Tokenizer, PairsAreFramed) {
  const std::string bert = R"(,"post_processor":{"type":"BertProcessing","sep":["d",3],"cls":["c",2]})";
  const auto tokenizer = Tokenizer::from_json(with(bert), "tokenizer.json");
  const PairIds pair = tokenizer->encode_pair("ab", "a", true);
  EXPECT_EQ(pair.ids, (Ids{2, 4, 3, 0, 3}));
  EXPECT_EQ(pair.types, (Ids{0, 0, 0, 1, 1}));
  EXPECT_EQ(tokenizer->encode_pair("ab", "a", false).ids, (Ids{4, 0}));
}

TEST(Tokenizer, WhatIsUnknownIsRefusedByName) {
  EXPECT_NE(error_of(with(R"(,"normalizer":{"type":"NFX"})")).find("normalizer.type is 'NFX'"),
            std::string::npos);
  EXPECT_NE(
      error_of(with(R"(,"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"UnicodeScripts"}]})"))
          .find("pre_tokenizer.pretokenizers[0].type is 'UnicodeScripts'"),
      std::string::npos);
  EXPECT_NE(error_of(with(R"(,"decoder":{"type":"CTC"})")).find("decoder.type is 'CTC'"), std::string::npos);
  EXPECT_NE(error_of(with(R"(,"normalizer":{"type":"NFC","soft":true})")).find("normalizer.soft"),
            std::string::npos);
  EXPECT_NE(error_of(with("", R"(,"dropout":0.1)")).find("model.dropout is 0.1"), std::string::npos);
  EXPECT_NE(error_of(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})")
                .find("model.merges[0] has the token 'b'"),
            std::string::npos);
  EXPECT_NE(error_of("{").find("not JSON"), std::string::npos);
  const std::string split =
      R"(,"pre_tokenizer":{"type":"Split","behavior":"Isolated","invert":false,"pattern":{"Regex":")";
  EXPECT_NE(error_of(with(split + R"(\\p{Greek}"}})")).find("the property 'Greek'"), std::string::npos);
  EXPECT_NE(error_of(with(split + R"([a-z&&[b]]"}})")).find("intersection"), std::string::npos);
  EXPECT_NE(error_of(with(split + R"(a{2}+"}})")).find("a count with a plus"), std::string::npos);
  EXPECT_NE(error_of(with(split + R"((a"}})")).find("cannot be read"), std::string::npos);
}

TEST(Tokenizer, AFolderSaysWhatBeginsAndEnds) {
  const TestFolder folder;
  folder.write("tokenizer.json", with(""));
  folder.write("tokenizer_config.json", R"({"bos_token":"a","eos_token":{"content":"b"},"pad_token":null})");
  const auto tokenizer = Tokenizer::open(folder.path());
  EXPECT_EQ(tokenizer->bos(), 0);
  EXPECT_EQ(tokenizer->eos(), 1);
  EXPECT_EQ(tokenizer->pad(), std::nullopt);
  EXPECT_THROW(Tokenizer::open(folder.path("nothing")), UserError);
}

TEST(StreamDecoder, HoldsIncompleteCharacters) {
  // The two bytes of an e with an acute accent, as two tokens.
  const std::string file =
      R"({"model":{"type":"BPE","vocab":{"Ã":0,"©":1,"a":2},"merges":[]},"pre_tokenizer":{"type":"ByteLevel",)"
      R"("add_prefix_space":false},"decoder":{"type":"ByteLevel"}})";
  const auto tokenizer = Tokenizer::from_json(file, "tokenizer.json");
  EXPECT_EQ(tokenizer->encode("éa", true), (Ids{0, 1, 2}));
  StreamDecoder stream(*tokenizer, true);
  EXPECT_EQ(stream.push(0), "");
  EXPECT_EQ(stream.push(1), "é");
  EXPECT_EQ(stream.push(2), "a");
  EXPECT_EQ(stream.push(0), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace lockstep

// Corpora of tokens: the three layouts hold the same records, rows are cut and packed as documented, and what
// does not hold together is refused by file and byte.
#include "data/tokens/tokens_format.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_folder.h"
#include "data/bytes/byte_source.h"
#include "data/open/corpus.h"
#include "data/testing/test_corpora.h"
#include "data/tokens/token_rows.h"

namespace lockstep {
namespace {

using Shards = std::vector<std::unique_ptr<ByteSource>>;

// Documents of 1 to 40 tokens below 500.
Documents some_documents(int count) {
  Documents documents;
  for (int d = 0; d < count; ++d) {
    documents.emplace_back();
    for (int i = 0; i < 1 + d * 7919 % 40; ++i) documents.back().push_back((d * 31 + i * 17) % 500);
  }
  return documents;
}

std::vector<int32_t> joined(const Documents& documents) {
  std::vector<int32_t> tokens;
  for (const auto& document : documents) tokens.insert(tokens.end(), document.begin(), document.end());
  return tokens;
}

std::unique_ptr<ByteSource> megatron(const std::string& index, const std::string& tokens) {
  Shards parts;
  parts.push_back(open_text("c.idx", index));
  parts.push_back(open_text("c.bin", tokens));
  return join_bytes("c.bin", std::move(parts));
}

FormatOptions options_of(int64_t seq, const std::string& pack = "split",
                         const std::string& documents = "joined", int64_t vocab = 500) {
  FormatOptions options;
  options.settings = {{"seq", std::to_string(seq)},
                      {"vocab", std::to_string(vocab)},
                      {"pack", pack},
                      {"documents", documents}};
  return options;
}

ShardSet set_of(std::unique_ptr<ByteSource> shard, const FormatOptions& options, double most_bad = 0) {
  Shards shards;
  shards.push_back(std::move(shard));
  return ShardSet(make_tokens_format(options), std::move(shards), {.most_bad = most_bad});
}

ColumnBlock read(const ShardSet& set, int64_t first, int64_t count) {
  BlockScratch scratch;
  StageCounters counters;
  set.load(first, count, scratch, counters);
  return scratch.block;
}

std::vector<int32_t> column(const ColumnBlock& block, const std::string& name) {
  return block.column(name).as<int32_t>();
}

std::string error_of(std::unique_ptr<ByteSource> shard, const FormatOptions& options) {
  try {
    const ShardSet set = set_of(std::move(shard), options);
    read(set, 0, set.manifest().records());
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(TokensFormat, AllLayoutsHoldTheSameWindows) {
  const Documents documents = some_documents(50);
  const std::vector<int32_t> tokens = joined(documents);
  const auto records = static_cast<int64_t>((tokens.size() - 1) / 8);
  std::vector<std::unique_ptr<ByteSource>> layouts;
  layouts.push_back(megatron(megatron_index(documents, 8, 2), token_bytes<uint16_t>(documents)));
  layouts.push_back(megatron(megatron_index(documents, 4, 4), token_bytes<int32_t>(documents)));
  layouts.push_back(megatron(megatron_index(documents, 5, 8, true), token_bytes<int64_t>(documents)));
  layouts.push_back(open_text("a.bin", llm_c_shard(tokens, false)));
  layouts.push_back(open_text("b.bin", llm_c_shard(tokens, true)));
  layouts.push_back(open_text("c.tokens", token_file(documents)));
  for (auto& layout : layouts) {
    const ShardSet set = set_of(std::move(layout), options_of(8));
    ASSERT_EQ(set.manifest().records(), records);
    const ColumnBlock block = read(set, 0, records);
    for (int64_t t = 0; t < records * 8; ++t) {
      ASSERT_EQ(column(block, "tokens")[static_cast<size_t>(t)], tokens[static_cast<size_t>(t)]);
      ASSERT_EQ(column(block, "targets")[static_cast<size_t>(t)], tokens[static_cast<size_t>(t) + 1]);
    }
    EXPECT_EQ(block.columns.size(), 2u);
  }
}

TEST(TokensFormat, AnyRangeEqualsTheWhole) {
  const Documents documents = some_documents(300);
  for (const char* pack : {"split", "best_fit"}) {
    const ShardSet set = set_of(open_text("c", token_file(documents)), options_of(16, pack, "separate"));
    const int64_t records = set.manifest().records();
    const ColumnBlock whole = read(set, 0, records);
    for (int64_t first = 0; first < records; first += 7)
      for (const int64_t count : {int64_t{1}, int64_t{5}}) {
        if (first + count > records) continue;
        const ColumnBlock part = read(set, first, count);
        for (const char* name : {"tokens", "targets", "documents", "positions"}) {
          const auto all = column(whole, name);
          EXPECT_EQ(column(part, name),
                    std::vector<int32_t>(all.begin() + first * 16, all.begin() + (first + count) * 16))
              << pack << " " << name << " " << first;
        }
      }
  }
}

// Of every record, in ranges of 5.
void expect_compact_equals_columns(const ShardSet& set, int64_t seq) {
  const CompactRows& kind = *set.compact_rows();
  const ColumnBlock whole = read(set, 0, set.records());
  const auto width = static_cast<size_t>(seq);
  std::vector<std::byte> rows(static_cast<size_t>(5 * kind.row_bytes()));
  std::vector<int32_t> tokens(width), targets(width);
  const std::vector<std::byte*> columns{reinterpret_cast<std::byte*>(tokens.data()),
                                        reinterpret_cast<std::byte*>(targets.data())};
  BlockScratch scratch;
  StageCounters counters;
  for (int64_t first = 0; first < set.records(); first += 5) {
    const int64_t count = std::min<int64_t>(5, set.records() - first);
    set.load_compact(first, count, rows.data(), scratch, counters);
    for (int64_t r = 0; r < count; ++r) {
      kind.expand(rows.data() + r * kind.row_bytes(), columns);
      const auto at = (first + r) * seq;
      ASSERT_TRUE(
          std::equal(tokens.begin(), tokens.end(), whole.column("tokens").as<int32_t>().begin() + at));
      ASSERT_TRUE(
          std::equal(targets.begin(), targets.end(), whole.column("targets").as<int32_t>().begin() + at));
    }
  }
}

TEST(TokensFormat, CompactRowsEqualColumns) {
  Documents documents = some_documents(50);
  documents[7][0] = 499;
  const std::vector<int32_t> tokens = joined(documents);
  // Above 16 bits, rows are of 4 bytes a token; with a vocabulary of 499 a window is left out.
  for (const int64_t vocab : {500, 1 << 16, (1 << 16) + 1, 499}) {
    FormatOptions options = options_of(9, "split", "joined", vocab);
    options.bad = vocab == 499 ? BadRecords::kSkip : BadRecords::kStop;
    Shards shards;
    shards.push_back(megatron(megatron_index(documents, 8, 2), token_bytes<uint16_t>(documents)));
    shards.push_back(megatron(megatron_index(documents, 3, 2), token_bytes<int16_t>(documents)));
    shards.push_back(open_text("b.bin", llm_c_shard(tokens, true)));
    shards.push_back(open_text("c.tokens", token_file(documents)));
    const ShardSet set(make_tokens_format(options), std::move(shards), {.most_bad = 1});
    EXPECT_EQ(set.bad_count() > 0, vocab == 499);
    expect_compact_equals_columns(set, 9);
  }
}

TEST(TokensFormat, CompactRowsAreCheckedToo) {
  const Documents documents{{1, 2, 3, 4, 5, 6, 7, 8, 9}};
  const auto tokens = std::make_shared<std::string>(token_bytes<int16_t>(documents));
  Shards parts, shards;
  parts.push_back(open_text("c.idx", megatron_index(documents, 3, 2)));
  parts.push_back(open_text("c.bin", std::shared_ptr<const std::string>(tokens)));
  shards.push_back(join_bytes("c.bin", std::move(parts)));
  const ShardSet set(make_tokens_format(options_of(2, "split", "joined", 1 << 16)), std::move(shards));
  // After it was indexed. -1 as a signed token is 65535 as an unsigned one.
  tokens->replace(6, 2, "\xff\xff");
  std::vector<std::byte> rows(static_cast<size_t>(set.compact_rows()->row_bytes()));
  BlockScratch scratch;
  StageCounters counters;
  set.load_compact(0, 1, rows.data(), scratch, counters);
  EXPECT_THROW(set.load_compact(1, 1, rows.data(), scratch, counters), UserError);
  const auto separate = options_of(8, "split", "separate");
  EXPECT_EQ(set_of(open_text("c", token_file(some_documents(9))), separate).compact_rows(), nullptr);
}

TEST(TokensFormat, DocumentsAreKeptApart) {
  const Documents documents{{1, 2, 3}, {}, {4, 5}, {6, 7, 8, 9, 10, 11, 12}};
  const ShardSet set = set_of(megatron(megatron_index(documents, 8, 2), token_bytes<uint16_t>(documents)),
                              options_of(4, "split", "separate"));
  const ColumnBlock block = read(set, 0, 2);
  EXPECT_EQ(column(block, "tokens"), (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(column(block, "targets"), (std::vector<int32_t>{2, 3, -100, 5, -100, 7, 8, 9}));
  EXPECT_EQ(column(block, "documents"), (std::vector<int32_t>{0, 0, 0, 1, 0, 1, 1, 1}));
  EXPECT_EQ(column(block, "positions"), (std::vector<int32_t>{0, 1, 2, 0, 0, 0, 1, 2}));
}

TEST(TokensFormat, RowsEndWithTheirDocument) {
  // The second document begins exactly with the second row: its first token is no target.
  const Documents documents{{1, 2, 3, 4}, {5, 6, 7, 8, 9}};
  const ShardSet set = set_of(open_text("c", token_file(documents)), options_of(4, "split", "separate"));
  EXPECT_EQ(column(read(set, 0, 1), "targets"), (std::vector<int32_t>{2, 3, 4, -100}));
  EXPECT_EQ(column(read(set, 1, 1), "targets"), (std::vector<int32_t>{6, 7, 8, 9}));
}

TEST(TokensFormat, PacksWholeDocuments) {
  const Documents documents{{1, 2, 3}, {4, 5, 6, 7, 8, 9, 10}, {11, 12}, {13}};
  const ShardSet set = set_of(open_text("c", token_file(documents)), options_of(4, "best_fit", "separate"));
  ASSERT_EQ(set.manifest().records(), 3);
  const ColumnBlock block = read(set, 0, 3);
  // The long document fills a row; its rest and the first are as long as each other.
  EXPECT_EQ(column(block, "tokens"), (std::vector<int32_t>{4, 5, 6, 7, 1, 2, 8, 9, 11, 0, 0, 0}));
  EXPECT_EQ(column(block, "targets"), (std::vector<int32_t>{5, 6, 7, 8, 2, 3, 9, 10, 12, -100, -100, -100}));
  EXPECT_EQ(column(block, "documents"), (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1}));
  EXPECT_EQ(column(block, "positions"), (std::vector<int32_t>{0, 1, 2, 3, 0, 1, 0, 1, 0, 0, 1, 2}));
}

TEST(TokenPacking, EveryPieceIsPlacedOnceAndLittleIsLeft) {
  std::vector<TokenPiece> pieces;
  int64_t positions = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    cut_document(i * 1000, i * 1000 + 2 + i * 7919 % 700, 256, pieces);
    positions += 1 + i * 7919 % 700;
  }
  const PackedRows rows = pack_best_fit(pieces, 256);
  std::vector<TokenPiece> placed;
  for (const auto& row : rows) {
    int64_t used = 0;
    for (const TokenPiece& piece : row) used += piece.positions;
    EXPECT_LE(used, 256);
    placed.insert(placed.end(), row.begin(), row.end());
  }
  const auto by_place = [](const TokenPiece& a, const TokenPiece& b) { return a.first < b.first; };
  std::sort(placed.begin(), placed.end(), by_place);
  std::sort(pieces.begin(), pieces.end(), by_place);
  EXPECT_EQ(placed, pieces);
  EXPECT_LT(static_cast<double>(rows.size()) * 256, static_cast<double>(positions) * 1.01);
}

TEST(TokensFormat, WindowsOfPackingAreIndependent) {
  // More tokens than a packing window holds: 512 rows of 4.
  const Documents documents = some_documents(400);
  const ShardSet set = set_of(open_text("c", token_file(documents)), options_of(4, "best_fit"));
  EXPECT_GT(set.index(0).granules(), 2);
  int64_t targets = 0, expected = 0;
  const ColumnBlock block = read(set, 0, set.manifest().records());
  for (const int32_t target : column(block, "targets")) targets += target >= 0 ? 1 : 0;
  for (const auto& document : documents) expected += static_cast<int64_t>(document.size()) - 1;
  EXPECT_EQ(targets, expected);
}

TEST(TokensFormat, TokensOutsideTheVocabularyStopOrAreLeftOut) {
  Documents documents{{1, 2, 3, 4}, {5, 600, 7, 8}, {9, 10, 11, 12, 13}};
  EXPECT_EQ(error_of(open_text("c", token_file(documents)), options_of(4)),
            "c at byte 74: token 600 is not in the vocabulary of 500");
  FormatOptions options = options_of(4);
  options.bad = BadRecords::kSkip;
  const ShardSet split = set_of(open_text("c", token_file(documents)), options, 0.5);
  // The window before it reads only the 5.
  EXPECT_EQ(split.bad_records(),
            (std::vector<std::string>{"c at byte 72: token 600 is not in the vocabulary of 500"}));
  EXPECT_EQ(column(read(split, 0, 2), "tokens"), (std::vector<int32_t>{1, 2, 3, 4, 9, 10, 11, 12}));
  EXPECT_EQ(column(read(split, 1, 1), "tokens"), (std::vector<int32_t>{9, 10, 11, 12}));
  options.settings["pack"] = "best_fit";
  const ShardSet packed = set_of(open_text("c", token_file(documents)), options, 0.5);
  EXPECT_EQ(column(read(packed, 0, 2), "tokens"), (std::vector<int32_t>{9, 10, 11, 12, 1, 2, 3, 0}));
  documents[1][1] = -1;
  EXPECT_EQ(
      error_of(megatron(megatron_index(documents, 4, 4), token_bytes<int32_t>(documents)), options_of(4)),
      "c.bin at byte 20: token below 0 or above 2^31 is not in the vocabulary of 500");
}

std::string changed(std::string text, size_t at, char value) {
  text[at] = value;
  return text;
}

TEST(TokensFormat, AnIndexThatLiesIsRefused) {
  const Documents documents{{1, 2, 3}, {4, 5, 6}};
  const std::string index = megatron_index(documents, 8, 2), tokens = token_bytes<uint16_t>(documents);
  const auto error = [&](size_t at, char value) {
    return error_of(megatron(changed(index, at, value), tokens), options_of(2, "split", "separate"));
  };
  EXPECT_NE(error(9, 2).find("byte 9 of its index: version 2 is not known"), std::string::npos);
  EXPECT_NE(error(17, 7).find("byte 17 of its index: element type 7 does not hold tokens"),
            std::string::npos);
  EXPECT_NE(error(17, 99).find("element type 99"), std::string::npos);
  EXPECT_NE(error(18, 100).find("100 sequences and 3 document ends do not fit"), std::string::npos);
  EXPECT_NE(error(25, 127).find("do not fit"), std::string::npos);
  EXPECT_NE(error(34, 2).find("sequence 1 of 3 tokens begins at byte 6, but those before it end at byte 4"),
            std::string::npos);
  EXPECT_NE(error(50, 8).find("describes 14 bytes of tokens, but 12 bytes are there"), std::string::npos);
  EXPECT_NE(error(66, 9).find("a document ends at sequence 9 of 2"), std::string::npos);
  EXPECT_NE(error(58, 1).find("the first document does not begin with sequence 0"), std::string::npos);
  EXPECT_NE(error(74, 1).find("the last document ends at token 3 of 6"), std::string::npos);
}

TEST(TokensFormat, ShardsCutAnywhereAreRefused) {
  const Documents documents{{1, 2, 3}, {4, 5, 6, 7}};
  const std::string index = megatron_index(documents, 8, 2), tokens = token_bytes<uint16_t>(documents);
  for (size_t cut = 0; cut < index.size(); ++cut)
    EXPECT_NE(error_of(megatron(index.substr(0, cut), tokens), options_of(2)), "") << cut;
  for (size_t cut = 0; cut < tokens.size(); ++cut)
    EXPECT_NE(error_of(megatron(index, tokens.substr(0, cut)), options_of(2)), "") << cut;
  for (const std::string& shard : {token_file(documents), llm_c_shard({1, 2, 3, 4}, true)})
    for (size_t cut = 0; cut < shard.size(); ++cut)
      EXPECT_NE(error_of(open_text("c", shard.substr(0, cut)), options_of(2)), "") << cut;
}

TEST(TokensFormat, WhatIsNotKnownIsSaidSo) {
  EXPECT_NE(error_of(open_text("c", "hello, I am a text"), options_of(2)).find("not a corpus of tokens"),
            std::string::npos);
  EXPECT_NE(error_of(open_text("c", std::string("TNTIDX\0\0abcd", 12)), options_of(2)).find("older kind"),
            std::string::npos);
  const std::string shard = llm_c_shard({1, 2, 3, 4}, false);
  EXPECT_NE(error_of(open_text("c", changed(shard, 4, 9)), options_of(2)).find("version 9"),
            std::string::npos);
  EXPECT_NE(error_of(open_text("c", shard), options_of(2, "best_fit")).find("where its documents end"),
            std::string::npos);
  EXPECT_THROW(make_tokens_format({}), UserError);
  EXPECT_THROW(make_tokens_format(options_of(0)), UserError);
  EXPECT_THROW(make_tokens_format(options_of(2, "best")), UserError);
}

TEST(Corpus, IsFoundByEitherFileAndReadThroughItsIndex) {
  const TestFolder folder;
  const Documents documents = some_documents(100);
  folder.write("d/a.idx", megatron_index(documents, 8, 2));
  folder.write("d/a.bin", token_bytes<uint16_t>(documents));
  folder.write("d/b.bin", llm_c_shard(joined(documents), false));
  CorpusOptions options;
  options.seq = 8;
  options.vocab = 500;
  const auto all = open_corpus(options, {folder.path("d")});
  const auto one = open_corpus(options, {folder.path("d/a.idx")});
  EXPECT_EQ(all->size(), 2 * one->size());
  EXPECT_EQ(open_corpus(options, {folder.path("d/a.bin")})->fingerprint(), one->fingerprint());
  Batch batch(all->columns(), 2);
  all->fill(std::vector<int64_t>{3, 3 + one->size()}, batch);
  const auto tokens = batch.values<int32_t>(0);
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.begin() + 8, tokens.begin() + 8));
  EXPECT_EQ(all->describe(3), folder.path("d/a.bin") + " at byte 48");
  // Another file in the place of the tokens: a new index, another identity.
  Documents other = documents;
  other[0][0] += 1;
  folder.write("d/a.bin", token_bytes<uint16_t>(other));
  EXPECT_NE(open_corpus(options, {folder.path("d/a.bin")})->fingerprint(), one->fingerprint());
  EXPECT_THROW(one->fill(std::vector<int64_t>{0}, batch), Error);
  folder.write("e/lonely.idx", megatron_index(documents, 8, 2));
  EXPECT_THROW(open_corpus(options, {folder.path("e")}), UserError);
}

}  // namespace
}  // namespace lockstep

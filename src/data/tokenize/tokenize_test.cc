#include "data/tokenize/tokenize.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/test_folder.h"
#include "chat/tokenizer_testing.h"
#include "data/open/corpus.h"
#include "data/tokenize/corpus_files.h"
#include "data/tokens/token_corpus.h"

namespace lockstep {
namespace {

using testing::ByteTokenizer;

// Documents as texts, with what counts between brackets.
struct Collected : TokenSink {
  void append(std::span<const int32_t> ids, std::span<const uint8_t> counts) override {
    all.insert(all.end(), ids.begin(), ids.end());
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool counted = !counts.empty() && counts[i] != 0;
      if (ids[i] < 256 && !counted)
        open += static_cast<char>(ids[i]);
      else
        open += counted ? "[" + *names.token_of(ids[i]) + "]" : *names.token_of(ids[i]);
    }
  }
  void end_document() override { documents.push_back(std::exchange(open, {})); }

  ByteTokenizer names{{"<s>", "</s>", "<|im_start|>", "<|im_end|>"}};
  std::string open;
  std::vector<std::string> documents;
  std::vector<int32_t> all;
};

TokenizeOptions options_of(const std::vector<std::string>& files, TextDocuments kind = TextDocuments::kFile) {
  TokenizeOptions options;
  options.tokenizer =
      std::make_shared<ByteTokenizer>(std::vector<std::string>{"<s>", "</s>", "<|im_start|>", "<|im_end|>"},
                                      std::vector<std::string>{}, true);
  options.input.files = files;
  options.input.documents = kind;
  options.eos = options.tokenizer->eos();
  return options;
}

TokenizeOptions chat_options(const std::string& file, int64_t longest = 0) {
  TokenizeOptions options = options_of({file});
  options.input.format = "jsonl";
  options.input.messages = "messages";
  options.chat = std::make_shared<ChatEncoder>(options.tokenizer, find_chat_template("chatml", ""),
                                               ChatLoss::kResponses);
  options.longest = longest;
  return options;
}

std::string error_of(const TokenizeOptions& options) {
  try {
    Collected sink;
    DocumentSet(options).tokenize(sink);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

class TokenizeTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    write_file(folder_.path(name), text);
    return folder_.path(name);
  }
  TestFolder folder_;
};

TEST_F(TokenizeTest, TextFilesAreDocumentsOrHoldSome) {
  const std::string path = file("a.txt", "one\r\ntwo\n\n \nthree\nfour\n");
  const auto documents = [&](TextDocuments kind) {
    Collected sink;
    DocumentSet(options_of({path}, kind)).tokenize(sink);
    return sink.documents;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(documents(TextDocuments::kFile), Texts{"<s>one\r\ntwo\n\n \nthree\nfour\n</s>"});
  EXPECT_EQ(documents(TextDocuments::kLine),
            (Texts{"<s>one</s>", "<s>two</s>", "<s>three</s>", "<s>four</s>"}));
  EXPECT_EQ(documents(TextDocuments::kBlock), (Texts{"<s>one\r\ntwo</s>", "<s>three\nfour</s>"}));
}

TEST_F(TokenizeTest, AnyNumberOfThreadsGivesTheSameTokens) {
  std::string text, lines;
  for (int i = 0; i < 40'000; ++i)
    text += fmt::format("line {} of a longer text{}\n", i, i % 7 == 0 ? "\n" : "");
  for (int i = 0; i < 5000; ++i) lines += fmt::format("{{\"text\": \"row {} \\u00e9\", \"n\": {}}}\n", i, i);
  for (const auto kind : {TextDocuments::kFile, TextDocuments::kLine, TextDocuments::kBlock}) {
    TokenizeOptions options = options_of({file("a.txt", text), file("b.txt", "short")}, kind);
    Collected one, two;
    DocumentSet(options).tokenize(one);
    options.threads = 2;
    const TokenizeReport report = DocumentSet(options).tokenize(two);
    EXPECT_EQ(one.all, two.all);
    EXPECT_EQ(one.documents, two.documents);
    EXPECT_EQ(report.tokens, std::ssize(two.all));
    // More than one piece, and a document over all of them.
    if (kind != TextDocuments::kFile) continue;
    EXPECT_EQ(one.documents, (std::vector<std::string>{"<s>" + text + "</s>", "<s>short</s>"}));
  }
  TokenizeOptions options = options_of({file("a.jsonl", lines)});
  options.input.format = "jsonl";
  options.input.column = "text";
  Collected one, two;
  DocumentSet(options).tokenize(one);
  options.threads = 2;
  DocumentSet(options).tokenize(two);
  EXPECT_EQ(one.all, two.all);
  EXPECT_EQ(one.documents.size(), 5000u);
  EXPECT_EQ(one.documents[7], "<s>row 7 é</s>");
}

TEST_F(TokenizeTest, ATextIsCutOnlyWhereItsTokensAreTheSame) {
  std::string text;
  while (text.size() < (5u << 18)) text += "abc\nx";
  TokenizeOptions options = options_of({file("a.txt", text)});
  // The only newlines are within a token.
  options.tokenizer = std::make_shared<ByteTokenizer>(std::vector<std::string>{"<s>", "</s>"},
                                                      std::vector<std::string>{"\nx"});
  Collected sink;
  DocumentSet(options).tokenize(sink);
  std::vector<int32_t> whole = options.tokenizer->encode(text, true);
  whole.push_back(257);
  EXPECT_EQ(sink.all, whole);
}

constexpr std::string_view kChats =
    R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]})"
    "\n"
    R"({"messages": [{"role": "user", "content": "a long question"}, {"role": "assistant", "content": "no"}]})"
    "\n";

TEST_F(TokenizeTest, ConversationsAreCutAndThoseWithoutAResponseDropped) {
  const std::string path = file("a.jsonl", std::string(kChats));
  Collected whole;
  EXPECT_EQ(DocumentSet(chat_options(path)).tokenize(whole).documents, 2);
  EXPECT_EQ(whole.documents[0],
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n[y][o][<|im_end|>]\n");
  // 22 tokens are those before the response and its first one.
  Collected cut;
  const TokenizeReport report = DocumentSet(chat_options(path, 22)).tokenize(cut);
  EXPECT_EQ(cut.documents,
            std::vector<std::string>{"<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n[y]"});
  EXPECT_EQ(report.cut, 2);
  EXPECT_EQ(report.dropped, 1);
  EXPECT_EQ(error_of(chat_options(path, 10)),
            "no document is left to learn from: 2 are so long that no response is left within 10 tokens; set "
            "model.seq to more");
}

TEST_F(TokenizeTest, WhatCannotBeUsedIsNamedByFileAndLine) {
  const std::string path = file(
      "a.jsonl",
      std::string(kChats) +
          R"({"messages": [{"role": "narrator", "content": "x"}, {"role": "assistant", "content": "y"}]})" +
          "\n");
  EXPECT_EQ(error_of(chat_options(path)),
            path +
                ":3: the chat template chatml, line 4: there is no role 'narrator'; "
                "write system, user, assistant or tool");
  TokenizeOptions skips = chat_options(path);
  skips.bad = BadRecords::kSkip;
  skips.most_bad = 0.5;
  Collected sink;
  EXPECT_EQ(DocumentSet(skips).tokenize(sink).bad, 1);
  EXPECT_EQ(sink.documents.size(), 2u);
  skips.most_bad = 0.1;
  EXPECT_NE(error_of(skips).find("1 of 3 documents cannot be used"), std::string::npos) << error_of(skips);
  TokenizeOptions other = chat_options(path);
  other.input.messages = "talk";
  EXPECT_NE(error_of(other).find("'talk'"), std::string::npos) << error_of(other);
  TokenizeOptions small = options_of({file("b.txt", "abc")});
  small.vocab = 99;
  EXPECT_NE(error_of(small).find("the tokenizer is not the model's"), std::string::npos) << error_of(small);
}

TEST_F(TokenizeTest, ACorpusIsMadeOnceAndReadWithItsMarks) {
  const std::string path = file("a.jsonl", std::string(kChats));
  const TokenizeOptions options = chat_options(path);
  const TokenFileLayout layout = layout_of_tokens(options.tokenizer->vocab_size(), true);
  EXPECT_TRUE(keep_corpus(options, layout, "k").built);
  EXPECT_TRUE(keep_corpus(options, layout, "other").built);
  KeptCorpus kept = keep_corpus(options, layout, "k");
  EXPECT_FALSE(kept.built);
  EXPECT_EQ(kept.report.documents, 2);
  const auto rows = [&](KeptCorpus from, bool best_fit, bool separate) {
    std::vector<std::unique_ptr<ByteSource>> shards;
    shards.push_back(std::move(from.tokens));
    return open_corpus({.seq = 30, .vocab = 300, .best_fit = best_fit, .separate = separate, .marked = true},
                       std::move(shards));
  };
  const auto source = rows(std::move(kept), true, true);
  // Of 37 and 24 positions: the longer one fills a row, and its rest does not fit beside the other.
  ASSERT_EQ(source->size(), 3);
  Batch batch(source->columns(), 3);
  source->fill(std::vector<int64_t>{0, 1, 2}, batch);
  const auto tokens = batch.values<int32_t>(0), targets = batch.values<int32_t>(1);
  int counted = 0;
  for (size_t t = 0; t < targets.size(); ++t)
    if (targets[t] >= 0) {
      ++counted;
      EXPECT_TRUE(targets[t] == 'y' || targets[t] == 'o' || targets[t] == 'n' || targets[t] == 259)
          << targets[t];
      if ((t + 1) % 30 == 0) continue;
      EXPECT_EQ(tokens[t + 1], targets[t]);
    }
  EXPECT_GE(counted, 3);
  const auto joined = rows(keep_corpus(options, layout, "k"), false, false);
  Batch first(joined->columns(), 1);
  joined->fill(std::vector<int64_t>{0}, first);
  EXPECT_EQ(first.values<int32_t>(1)[20], 'y');
  EXPECT_EQ(first.values<int32_t>(1)[19], -100);
}

TEST_F(TokenizeTest, ShardsHoldWholeDocuments) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += fmt::format("document {}\n", i);
  const TokenizeOptions options = options_of({file("a.txt", text)}, TextDocuments::kLine);
  const std::string out = folder_.path("corpus.bin");
  CorpusWriter writer(out, {}, 16384, false);
  const TokenizeReport report = DocumentSet(options).tokenize(writer);
  writer.finish();
  EXPECT_EQ(writer.files()[1], folder_.path("corpus-00001.bin"));
  int64_t documents = 0, tokens = 0;
  for (const std::string& path : writer.files()) {
    const TokenCorpus shard(*open_file(path));
    documents += shard.documents();
    tokens += shard.tokens();
  }
  EXPECT_EQ(documents, report.documents);
  EXPECT_EQ(tokens, report.tokens);
  EXPECT_THROW(CorpusWriter(out, {}, 16384, false), UserError);
}

}  // namespace
}  // namespace lockstep

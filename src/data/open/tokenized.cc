#include "data/open/tokenized.h"

#include <filesystem>

#include "base/error.h"
#include "base/sha256.h"
#include "chat/row_tokenizer.h"
#include "data/open/corpus.h"
#include "data/open/part_options.h"
#include "data/tokenize/corpus_files.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& tokenizer) {
  return fs::is_directory(tokenizer) ? tokenizer : fs::path(tokenizer).parent_path().string();
}

DocumentInput input_of(const DataOptions& options, const std::string& format,
                       const std::vector<std::string>& files) {
  const TokenizedOptions& from = options.tokenized;
  DocumentInput input;
  input.format = format;
  input.files = files;
  if (input.is_text()) {
    input.documents = static_cast<TextDocuments>(from.text_documents);
    return input;
  }
  input.settings = options.settings;
  input.column = from.text;
  input.messages = from.messages;
  input.prompt = from.prompt;
  input.response = from.response;
  return input;
}

std::string note_of(const TokenizeReport& report, const DocumentInput& input, int64_t seq, bool built) {
  std::string note =
      fmt::format("{} {} of {} tokens, {}", report.documents, input.is_chat() ? "conversations" : "documents",
                  report.tokens, built ? "tokenized now" : "tokenized before");
  if (report.cut > 0) note += fmt::format("; {} longer than {} tokens are cut", report.cut, seq + 1);
  if (report.dropped > 0)
    note += fmt::format("; {} are left out, since no response was left", report.dropped);
  return note;
}

}  // namespace

std::shared_ptr<const Source> open_tokenized_files(const DataOptions& options, const std::string& format,
                                                   const std::vector<std::string>& files,
                                                   std::vector<std::string>& notes) {
  const TokenizedOptions& from = options.tokenized;
  TokenizeOptions tokenize;
  tokenize.tokenizer = Tokenizer::open(from.tokenizer);
  tokenize.input = input_of(options, format, files);
  tokenize.vocab = options.vocab;
  tokenize.bad = options.bad;
  tokenize.most_bad = options.most_bad;
  tokenize.threads = options.threads;
  tokenize.index_folder = options.index_folder;
  tokenize.progress = options.progress;
  const bool chat = tokenize.input.is_chat();
  std::string key = tokenizer_fingerprint(from.tokenizer);
  if (chat) {
    const ChatTemplate text = find_chat_template(from.chat_template, folder_of(from.tokenizer));
    tokenize.chat = std::make_shared<ChatEncoder>(tokenize.tokenizer, text,
                                                  from.loss_on_all ? ChatLoss::kAll : ChatLoss::kResponses);
    tokenize.longest = options.seq + 1;  // a row has T positions, and the target of the last
    key += fmt::format(" loss {} template {}", from.loss_on_all ? "all" : "responses", sha256(text.source));
  } else {
    tokenize.eos = tokenize.tokenizer->eos();
    if (!tokenize.eos && text_frame(*tokenize.tokenizer).after.empty())
      throw UserError(
          "{} does not say which token ends a text; name it as eos_token in the tokenizer_config.json beside "
          "it",
          from.tokenizer);
  }
  KeptCorpus kept = keep_corpus(tokenize, layout_of_tokens(options.vocab, chat), key);
  notes.push_back(note_of(kept.report, tokenize.input, options.seq, kept.built));
  CorpusOptions corpus = corpus_options(options);
  corpus.bad = BadRecords::kStop;  // no token of ours is
  corpus.index_folder.path = fs::path(kept.tokens->name()).parent_path().string();
  corpus.marked = chat;
  std::vector<std::unique_ptr<ByteSource>> shards;
  shards.push_back(std::move(kept.tokens));
  return open_corpus(corpus, std::move(shards));
}

Data open_tokenized(const DataOptions& options) {
  Data data;
  data.train = open_tokenized_files(options, options.tokenized.format, options.train.files, data.notes);
  if (options.eval.files.empty()) return data;
  DataOptions eval = options;
  eval.budget = options.eval_budget;
  data.eval =
      open_tokenized_files(eval, options.eval_table.empty() ? options.tokenized.format : options.eval_table,
                           options.eval.files, data.notes);
  return data;
}

}  // namespace lockstep

// Documents of files as tokens: text files, columns of tables, and conversations, in the order of their files
// and records. Documents are tokenized by several threads and handed over in order: the tokens are the same
// for any number of them. Files are read in pieces and never held as a whole.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chat/chat_encoder.h"
#include "data/format/format.h"
#include "data/shards/shard_set.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

// What a document of a text file is.
enum class TextDocuments : uint8_t { kFile, kLine, kBlock };  // a block: lines up to a blank one

// Where the documents stand.
struct DocumentInput {
  std::string format = "text";     // or that of a table: csv, jsonl, parquet, tfrecord, block
  std::vector<std::string> files;  // paths, folders and patterns
  std::map<std::string, std::string> settings = {};  // of the table's format
  TextDocuments documents = TextDocuments::kFile;    // of text files
  std::string column = {};                           // of tables: the text
  // Of tables of conversations: a column of messages (a list of objects with role and content, or its JSON),
  // or one of prompts and one of responses. Parquet's list of structs is read as two lists.
  std::string messages = {}, prompt = {}, response = {};

  std::string roles = {}, contents = {};  // the columns that messages lies in, where these are lists
  bool is_text() const { return format == "text"; }
  bool is_chat() const { return !messages.empty() || !prompt.empty(); }
  std::string text() const;  // all but the files, for keys
};

struct TokenizeOptions {
  std::shared_ptr<const Tokenizer> tokenizer;
  DocumentInput input;
  bool special_tokens = true;                    // frame documents as the tokenizer does (<s> ...)
  std::optional<int32_t> eos = {};               // ends every document, unless the frame ends with it
  std::shared_ptr<const ChatEncoder> chat = {};  // of conversations
  int64_t vocab = 0;                             // of the model: other tokens are refused; 0: any
  int64_t longest = 0;                           // tokens of a conversation that are kept; 0: all
  BadRecords bad = BadRecords::kStop;
  double most_bad = 0;
  int threads = 1;
  IndexFolder index_folder = {};
  IndexProgress progress = {};  // bytes of text, read and in all
};

// Takes tokens in order.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  // A part of a document. `counts` as TokenFileWriter::append has it.
  virtual void append(std::span<const int32_t> ids, std::span<const uint8_t> counts) = 0;
  virtual void end_document() = 0;
};

struct TokenizeReport {
  int64_t documents = 0, tokens = 0, counted = 0, bytes = 0;
  int64_t cut = 0;      // conversations that were longer
  int64_t dropped = 0;  // those of which no response was left
  int64_t bad = 0;      // documents that were left out
};

// What documents are read from: opened and indexed once, then asked for a key and for the documents.
class DocumentSet {
 public:
  // Throws UserError for files that cannot be read and columns that are not there.
  explicit DocumentSet(const TokenizeOptions& options);
  ~DocumentSet();

  // Of the files' contents, whatever they are called.
  std::string fingerprint() const;
  int64_t bytes() const;
  // Throws UserError that names file and line of a document that cannot be used, or of the first of too many.
  TokenizeReport tokenize(TokenSink& sink) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep

// DocumentTasks: the documents of a set as pieces of work of about a MiB each, in order. A piece is made by
// the thread that asks for it and run by any.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chat/row_tokenizer.h"
#include "data/tokenize/tokenize.h"

namespace lockstep {

// Tokens of the documents of one piece of work.
struct EncodedDocuments {
  std::vector<int32_t> ids;
  std::vector<uint8_t> counts;  // empty: all count
  std::vector<size_t> ends;     // of documents, in ids; the last may go on in the next piece
  int64_t bytes = 0;            // of text that was read
  int64_t cut = 0, dropped = 0;
  std::vector<std::string> problems;  // a line for each document that cannot be used
  std::string failure;                // why the rest cannot be read; empty: it was
};

using DocumentTask = std::function<void(EncodedDocuments& out)>;

class DocumentTasks {
 public:
  virtual ~DocumentTasks() = default;
  // Null at the end.
  virtual DocumentTask next() = 0;
};

// What stands before and after the tokens of every document.
TextFrame document_frame(const TokenizeOptions& options);

// The options outlive the tasks, and the files or records the tasks that were made of them.
std::unique_ptr<DocumentTasks> text_tasks(const TokenizeOptions& options,
                                          const std::vector<std::unique_ptr<ByteSource>>& files);
std::unique_ptr<DocumentTasks> table_tasks(const TokenizeOptions& options, const ShardSet& records);

}  // namespace lockstep

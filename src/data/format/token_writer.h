// Writes our own file of tokens, whose layout token_corpus.h describes.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/format/table_writer.h"

namespace lockstep {

// The bytes of a file with these documents, in as few bytes per token as their values need (2 or 4). Throws
// UserError for a negative token.
std::string token_file(const std::vector<std::vector<int32_t>>& documents);

// The same file of 2 bytes per token, written piece by piece: only the ends of the documents are held.
class TokenFile {
 public:
  explicit TokenFile(const std::string& path);

  void append(std::span<const uint16_t> tokens);  // to the document that is open
  void end_document();
  int64_t documents() const { return static_cast<int64_t>(ends_.size()); }
  // Gives the size of the file, which appears under its name only now.
  int64_t finish();

 private:
  PartialFile file_;
  uint64_t tokens_ = 0;
  std::vector<uint64_t> ends_;
};

}  // namespace lockstep

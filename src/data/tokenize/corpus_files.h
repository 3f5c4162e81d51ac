// Files of tokens that documents are tokenized into: shards of a size, as `lockstep tokenize` writes them,
// and the one file that is kept beside the data of a job.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/tokenize/tokenize.h"
#include "data/tokens/tokens_format.h"

namespace lockstep {

// Writes path, or path-00000.bin, path-00001.bin and so on where shards have a size ("corpus.bin" becomes
// "corpus-00000.bin"). A document stays within its shard. Without finish() nothing is left.
class CorpusWriter : public TokenSink {
 public:
  // shard_bytes 0: one file. Throws UserError for a file that is there already, unless it may be replaced.
  CorpusWriter(std::string path, TokenFileLayout layout, int64_t shard_bytes, bool replace);

  ~CorpusWriter() override;
  CorpusWriter(const CorpusWriter&) = delete;
  CorpusWriter& operator=(const CorpusWriter&) = delete;

  void append(std::span<const int32_t> ids, std::span<const uint8_t> counts) override;
  void end_document() override;
  void finish();

  const std::vector<std::string>& files() const { return files_; }
  int64_t bytes() const { return bytes_; }

 private:
  void open_shard();

  std::string path_;
  TokenFileLayout layout_;
  int64_t shard_bytes_;
  bool replace_;
  std::unique_ptr<TokenFileWriter> shard_;
  std::vector<std::string> files_;  // the last one is being written
  int64_t bytes_ = 0;
  bool finished_ = false;
};

// A corpus that was made of documents once and is kept, under a name that says of what and how.
struct KeptCorpus {
  std::unique_ptr<ByteSource> tokens;
  TokenizeReport report;  // of what is kept: documents, tokens, cut and dropped
  bool built = false;
};

// `key` is everything beside the files and DocumentInput::text that the tokens depend on. Several processes
// that start together make the corpus once. Where nothing may be kept (IndexFolder::writes), it lies in a
// temporary file. Throws UserError for what cannot be tokenized, and where the folder cannot be written.
KeptCorpus keep_corpus(const TokenizeOptions& options, TokenFileLayout layout, const std::string& key);

}  // namespace lockstep

// Corpora of tokens in files as a source for next-token training: tokens/tokens_format.h under a source of
// rows.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/reading/mapped_source.h"

namespace lockstep {

struct CorpusOptions {
  int64_t seq = 0, vocab = 0;
  bool best_fit = false;  // pack whole documents into rows; otherwise cut the row of all tokens
  bool separate = false;  // give the columns documents and positions
  bool marked = false;    // tokens say whether they count in the loss
  BadRecords bad = BadRecords::kStop;
  double most_bad = 0;
  IndexFolder index_folder = {};
  int threads = 1;  // to index with
  int64_t budget = int64_t{512} << 20;
  IndexProgress progress = {};
};

std::shared_ptr<const Source> open_corpus(const CorpusOptions& options,
                                          const std::vector<std::string>& files);
// The same of files that are open.
std::shared_ptr<const Source> open_corpus(const CorpusOptions& options,
                                          std::vector<std::unique_ptr<ByteSource>> files);

// Text files as a source for next-token training: text/text_format.h under a source of rows.
//
// The files are joined in the order of their paths, with nothing between them, and never held in memory as a
// whole; compressed ones (.gz, .zst) count by their content. Bytes after the last whole sequence are left
// out.
struct TextOptions {
  int64_t seq = 0;
  IndexFolder index_folder = {};
  int64_t budget = int64_t{512} << 20;
  IndexProgress progress = {};
};

// Throws UserError when the text does not fill one sequence.
std::shared_ptr<const Source> open_text_files(const TextOptions& options,
                                              const std::vector<std::string>& files);

}  // namespace lockstep

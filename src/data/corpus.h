// Corpora of tokens in files as a source for next-token training: format/tokens_format.h under a source of
// rows.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/pipeline/mapped_source.h"

namespace lockstep {

struct CorpusOptions {
  int64_t seq = 0, vocab = 0;
  bool best_fit = false;  // pack whole documents into rows; otherwise cut the row of all tokens
  bool separate = false;  // give the columns documents and positions
  BadRecords bad = BadRecords::kStop;
  double most_bad = 0;
  std::string index_folder = {};  // empty: beside the data
  int threads = 1;                // to index with
  int64_t budget = int64_t{512} << 20;
  IndexProgress progress = {};
};

std::shared_ptr<const Source> open_corpus(const CorpusOptions& options,
                                          const std::vector<std::string>& files);

}  // namespace lockstep

// Documents that a language model learns, from files of text and tables: tokenized once into a corpus that is
// kept beside the indexes (data/tokenize/corpus_files.h), and then read, packed and mixed as any corpus is.
//
// Of conversations, what is longer than a row is cut, and one of which no response is left is dropped; both
// are counted in Data::notes.
#pragma once
#include <string>

#include "data/open/open.h"

namespace lockstep {

Data open_tokenized(const DataOptions& options);
// Other files of the same kind, to evaluate on.
std::shared_ptr<const Source> open_tokenized_files(const DataOptions& options, const std::string& format,
                                                   const std::vector<std::string>& files,
                                                   std::vector<std::string>& notes);

}  // namespace lockstep

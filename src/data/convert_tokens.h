// Conversion of text to a corpus of tokens (format/token_corpus.h), a token for each byte: `lockstep data
// convert
// --to tokens`.
//
// Of a text file the whole content is one document; of a table every record is, by the column that is named.
// Nothing is held in memory but a piece of a file and the ends of the documents.
#pragma once
#include "data/convert.h"

namespace lockstep {

// Throws UserError as convert_files does, and for a table without the name of a column of text.
ConvertReport convert_to_tokens(const ConvertOptions& options, const std::string& from,
                                const std::vector<std::string>& paths, const std::vector<std::string>& outs);

}  // namespace lockstep

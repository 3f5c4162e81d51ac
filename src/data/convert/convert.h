// Conversion of data files from one format to another, shard by shard: `lockstep data convert`. Tables become
// tables; text, and a column of a table, becomes tokens (convert_tokens.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/format/table_writer.h"

namespace lockstep {

struct ConvertOptions {
  std::vector<std::string> files;  // paths, folders or patterns
  std::string from;                // a format; empty: by the ending of the first file
  std::string to = "block";
  std::string folder;                // each shard is written here under its name, with another ending
  std::string column;                // of a table that becomes tokens: the one with the text
  std::vector<std::string> text;     // columns to keep as text, though they hold only numbers
  std::vector<std::string> without;  // columns to leave out
  TableWriterOptions writer;
};

struct ConvertReport {
  int64_t records = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  std::vector<std::string> files;
};

// Formats that can be converted to.
std::vector<std::string_view> converted_formats();
// No value changes and no column is lost: all records are looked at before any is written. Text columns of
// CSV and TFRecord files become whole numbers or numbers where no record holds anything else. Throws
// UserError for a file that is in the way, and for a column that cannot be read or written.
ConvertReport convert_files(const ConvertOptions& options);

// Conversion of text to a corpus of tokens (tokens/token_corpus.h), a token for each byte: `lockstep data
// convert
// --to tokens`.
//
// Of a text file the whole content is one document; of a table every record is, by the column that is named.
// Nothing is held in memory but a piece of a file and the ends of the documents.

// Throws UserError as convert_files does, and for a table without the name of a column of text.
ConvertReport convert_to_tokens(const ConvertOptions& options, const std::string& from,
                                const std::vector<std::string>& paths, const std::vector<std::string>& outs);

}  // namespace lockstep

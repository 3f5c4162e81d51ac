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
  std::string folder;             // each shard is written here under its name, with another ending
  std::string column;             // of a table that becomes tokens: the one with the text
  std::vector<std::string> text;  // columns to keep as text, though a sample of them holds only numbers
  TableWriterOptions writer;
};

struct ConvertReport {
  int64_t records = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  std::vector<std::string> files;
};

// Text columns of CSV and TFRecord files become whole numbers or numbers where the first records of the first
// shard hold nothing else. Throws UserError for a file that is in the way, and for a later value that does
// not fit, by file and line.
// Formats that can be converted to.
std::vector<std::string_view> converted_formats();
ConvertReport convert_files(const ConvertOptions& options);

}  // namespace lockstep

// What must hold of any bytes that are given as CSV, as JSON lines, as an Example, as a TFRecord file, or as
// a compressed file.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Each reads the bytes as a shard and says whether all of it could be used. What indexing leaves out must be
// all that decoding refuses, and parts must equal the whole. Throws for anything but a UserError: that is a
// bug.
bool check_csv(std::string_view bytes);
bool check_jsonl(std::string_view bytes);
bool check_example(std::string_view bytes);   // the content of a record between two others
bool check_tfrecord(std::string_view bytes);  // also with its crcs made right
// A file that can be decompressed must give the same content in order and from the middle.
bool check_compressed(std::string_view bytes);

}  // namespace lockstep::testing

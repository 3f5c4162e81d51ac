// Makes the checksums of mutated bytes right again, so that a fuzzer gets past them to what lies behind: a
// reader must also hold against a file that was written wrongly with care.
//
// Each keeps all other bytes as they are, and gives bytes without a structure back unchanged.
#pragma once
#include <string>
#include <string_view>

namespace lockstep::testing {

std::string repaired_tfrecord(std::string_view bytes);       // both crcs of every frame whose length fits
std::string repaired_block_file(std::string_view bytes);     // magics, the hashes of chunks and footer
std::string repaired_shard_index(std::string_view bytes);    // magic and digest of a sidecar
std::string repaired_row_file(std::string_view bytes);       // magic and the hash of the header
std::string repaired_access_points(std::string_view bytes);  // the digest of the table
std::string repaired_tar(std::string_view bytes);            // the sum of every header
std::string repaired_png(std::string_view bytes);            // the crc of every chunk
std::string repaired_gzip(std::string_view bytes);           // crc and length of the first member

}  // namespace lockstep::testing

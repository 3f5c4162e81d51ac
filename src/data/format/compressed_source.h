// Compressed files as a ByteSource that gives their content, read at any offset by any number of threads.
//
// A read goes on where an earlier one ended if that is near, and begins at an access point otherwise: reading
// in order decompresses everything once, reading a block anywhere costs what lies between the point and it.
#pragma once
#include <memory>
#include <string>

#include "data/format/byte_source.h"

namespace lockstep {

// Opens a file; one that begins as gzip or zstd does, by its content. Access points are kept in `folder`, or
// in .lockstep-index beside the file if it is empty. Throws UserError for what cannot be opened or is
// damaged.
std::unique_ptr<ByteSource> open_shard(const std::string& path, const std::string& folder = {});

// The same for a file that is open already, or a text in memory.
std::unique_ptr<ByteSource> decompressed(std::unique_ptr<ByteSource> file, const std::string& folder = {});

// "tx.csv.gz" without ".gz", "tx.csv" as it is.
std::string_view without_compression(std::string_view path);

}  // namespace lockstep

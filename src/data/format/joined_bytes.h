// Several byte sources as one: the bytes of the first, then those of the next. For shards that lie in more
// than one file, such as an index and what it describes.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/format/byte_source.h"

namespace lockstep {

// `name` is what the whole is called; errors of reading name the part.
std::unique_ptr<ByteSource> join_bytes(std::string name, std::vector<std::unique_ptr<ByteSource>> parts);

}  // namespace lockstep

// Compressed bytes whose uncompressed size is known: the pages and chunks of columnar formats.
//
// The size that a file claims is what is allocated, never what the compressed stream says, and only where the
// stored bytes can give as much, so that a few of them cannot ask for all memory.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

enum class Codec : uint8_t { kNone, kSnappy, kGzip, kZstd, kLz4 };
std::string_view name_of(Codec compression);

// False where these bytes cannot unpack to so many, which costs no more than a look at their beginning.
bool may_unpack_to(Codec compression, std::string_view stored, size_t bytes);
// Fills `out`. False unless the stored bytes are whole and give exactly as many.
bool decompress(Codec compression, std::string_view stored, std::span<char> out);
// Same bytes in, same bytes out, for one version of the library. Level 0 is the library's own choice.
std::string compress(Codec compression, std::string_view bytes, int level = 0);

}  // namespace lockstep

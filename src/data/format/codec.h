// Compressed bytes whose uncompressed size is known: the pages and chunks of columnar formats.
//
// The size that a file claims is what is allocated, never what the compressed stream says, so that a few
// bytes cannot ask for more memory than the caller allows.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

enum class Codec : uint8_t { kNone, kSnappy, kGzip, kZstd, kLz4 };
std::string_view name_of(Codec compression);

// Fills `out`. False unless the stored bytes are whole and give exactly as many.
bool decompress(Codec compression, std::string_view stored, std::span<char> out);
// Same bytes in, same bytes out, for one version of the library. Level 0 is the library's own choice.
std::string compress(Codec compression, std::string_view bytes, int level = 0);

}  // namespace lockstep

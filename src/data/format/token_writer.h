// Writes our own file of tokens, whose layout token_corpus.h describes.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

// The bytes of a file with these documents, in as few bytes per token as their values need (2 or 4). Throws
// UserError for a negative token.
std::string token_file(const std::vector<std::vector<int32_t>>& documents);

}  // namespace lockstep

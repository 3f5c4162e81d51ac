// What must hold of any bytes that are given as a corpus of tokens.
#pragma once
#include <string_view>

namespace lockstep::testing {

// The first byte chooses how the corpus is read (packed or split, documents joined or separate, bad records
// left out or not); the rest is the shard: Megatron's .idx with the tokens after it, an llm.c shard, or our
// own. One that is read must give tokens of the vocabulary, and the same records one by one, all at once, and
// straight from a mapped file.
// Returns whether it was a corpus. Throws for anything but a UserError: that is a bug.
bool check_tokens(std::string_view bytes);

}  // namespace lockstep::testing

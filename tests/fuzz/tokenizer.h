// What must hold of any bytes that are given as a tokenizer.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Opens the file and encodes texts of every kind with it: ids of the vocabulary, that decode. Returns whether
// it was a tokenizer. Throws for anything but a UserError: that is a bug.
bool check_tokenizer_json(std::string_view file);
bool check_sentencepiece(std::string_view file);

}  // namespace lockstep::testing

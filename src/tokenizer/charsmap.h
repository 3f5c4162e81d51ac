// The precompiled map of characters that SentencePiece's normalizer is made of: a darts double array from
// byte strings to offsets into texts that end with a zero.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::tok {

class CharsMap {
 public:
  // `bytes` as they stand in a .model; `where` names them in errors.
  CharsMap(std::string_view bytes, const std::string& where);

  // SentencePiece's way: the longest prefix of the text that the map has. Its length (0: none), and what
  // replaces it.
  size_t longest(std::string_view text, std::string_view& replacement) const;
  // Whether some text that the map has starts with these bytes.
  bool starts(std::string_view bytes) const;
  // The way of tokenizer.json, on valid UTF-8: by grapheme clusters. One of less than six bytes is replaced
  // whole by what its shortest prefix maps to; of the others each character is looked up alone.
  std::string apply_to_clusters(std::string_view text) const;

 private:
  // The shortest prefix; false if the map has none.
  bool shortest(std::string_view text, std::string_view& replacement) const;
  std::string_view text_at(uint32_t offset) const;
  size_t cluster_end(std::string_view text, size_t begin) const;

  std::vector<uint32_t> units_;
  std::string texts_;
  bool plain_[128];  // ASCII characters that the map does not have
};

// Throws UserError for what is none.
std::string from_base64(std::string_view text, const std::string& where);

}  // namespace lockstep::tok

// Corpora of tokens as bytes, for tests: what other programs write.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace lockstep {

using Documents = std::vector<std::vector<int32_t>>;

template <typename T>
void append_number(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

template <typename Token>
std::string token_bytes(const Documents& documents) {
  std::string bytes;
  for (const auto& document : documents)
    for (const int32_t token : document) append_number<Token>(bytes, static_cast<Token>(token));
  return bytes;
}

// The .idx of Megatron for tokens of `width` bytes and that code; every document is one sequence.
inline std::string megatron_index(const Documents& documents, uint8_t code, int width, bool modes = false) {
  std::string index("MMIDIDX\0\0", 9);
  append_number<uint64_t>(index, 1);
  append_number<uint8_t>(index, code);
  append_number<uint64_t>(index, documents.size());
  append_number<uint64_t>(index, documents.size() + 1);
  for (const auto& document : documents) append_number(index, static_cast<int32_t>(document.size()));
  int64_t pointer = 0;
  for (const auto& document : documents) {
    append_number(index, pointer);
    pointer += static_cast<int64_t>(document.size()) * width;
  }
  for (size_t i = 0; i <= documents.size(); ++i) append_number(index, static_cast<int64_t>(i));
  if (modes) index.append(documents.size(), '\0');
  return index;
}

// A shard of llm.c with 16-bit or 32-bit tokens.
inline std::string llm_c_shard(const std::vector<int32_t>& tokens, bool wide) {
  std::string bytes;
  append_number<int32_t>(bytes, wide ? 20240801 : 20240520);
  append_number<int32_t>(bytes, wide ? 7 : 1);
  append_number(bytes, static_cast<int32_t>(tokens.size()));
  bytes.resize(1024, '\0');
  return bytes + (wide ? token_bytes<uint32_t>({tokens}) : token_bytes<uint16_t>({tokens}));
}

}  // namespace lockstep

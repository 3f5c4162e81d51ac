#include "data/format/token_writer.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/format/token_corpus.h"

namespace lockstep {
namespace {

template <typename T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

}  // namespace

std::string token_file(const std::vector<std::vector<int32_t>>& documents) {
  uint64_t tokens = 0;
  int32_t most = 0;
  for (const auto& document : documents) {
    tokens += document.size();
    for (const int32_t token : document) {
      if (token < 0) throw UserError("token {} is negative; a corpus holds numbers from 0 on", token);
      most = std::max(most, token);
    }
  }
  const bool wide = most > 0xffff;
  std::string out(kTokenMagic);
  put<uint32_t>(out, kTokenVersion);
  put<uint32_t>(out, wide ? 4 : 2);
  put<uint64_t>(out, tokens);
  put<uint64_t>(out, documents.size());
  out.resize(kTokenHeader, '\0');
  for (const auto& document : documents)
    for (const int32_t token : document) {
      if (wide)
        put<uint32_t>(out, static_cast<uint32_t>(token));
      else
        put<uint16_t>(out, static_cast<uint16_t>(token));
    }
  out.resize((out.size() + 7) / 8 * 8, '\0');
  uint64_t end = 0;
  for (const auto& document : documents) put<uint64_t>(out, end += document.size());
  return out;
}

}  // namespace lockstep

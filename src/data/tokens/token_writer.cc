#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "data/tokens/token_corpus.h"
#include "data/tokens/tokens_format.h"

namespace lockstep {
namespace {

template <typename T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

std::string header_of(uint32_t width, uint64_t tokens, uint64_t documents) {
  std::string out(kTokenMagic);
  put<uint32_t>(out, kTokenVersion);
  put<uint32_t>(out, width);
  put<uint64_t>(out, tokens);
  put<uint64_t>(out, documents);
  out.resize(kTokenHeader, '\0');
  return out;
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
  std::string out = header_of(wide ? 4 : 2, tokens, documents.size());
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

TokenFileWriter::TokenFileWriter(const std::string& path) : file_(path) { file_.write(header_of(2, 0, 0)); }

void TokenFileWriter::append(std::span<const uint16_t> tokens) {
  file_.write({reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()});
  tokens_ += tokens.size();
}

void TokenFileWriter::end_document() { ends_.push_back(tokens_); }

int64_t TokenFileWriter::finish() {
  LOCKSTEP_CHECK(tokens_ == (ends_.empty() ? 0 : ends_.back()), "a document is still open");
  file_.write(std::string(static_cast<size_t>((8 - file_.size() % 8) % 8), '\0'));
  file_.write({reinterpret_cast<const char*>(ends_.data()), ends_.size() * 8});
  file_.write_at(0, header_of(2, tokens_, ends_.size()));
  file_.finish();
  return file_.size();
}

}  // namespace lockstep

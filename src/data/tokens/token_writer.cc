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

std::string header_of(uint32_t width, uint64_t tokens, uint64_t documents, uint32_t version = kTokenVersion) {
  std::string out(kTokenMagic);
  put<uint32_t>(out, version);
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

TokenFileLayout layout_of_tokens(int64_t vocab, bool marked) {
  return {vocab <= (marked ? 1 << 15 : 1 << 16) ? 2 : 4, marked};
}

TokenFileWriter::TokenFileWriter(const std::string& path, TokenFileLayout layout)
    : layout_(layout), file_(path) {
  file_.write(header());
}

std::string TokenFileWriter::header() const {
  std::string out = header_of(static_cast<uint32_t>(layout_.width), tokens_, ends_.size(),
                              layout_.marked ? kMarkedTokenVersion : kTokenVersion);
  if (layout_.marked) {
    std::memcpy(out.data() + 32, &cut_, 8);
    std::memcpy(out.data() + 40, &dropped_, 8);
  }
  return out;
}

void TokenFileWriter::append(std::span<const int32_t> tokens, std::span<const uint8_t> counts) {
  LOCKSTEP_CHECK(counts.empty() || (layout_.marked && counts.size() == tokens.size()), "marks of {} tokens",
                 tokens.size());
  const int bits = layout_.width * 8 - (layout_.marked ? 1 : 0);
  encoded_.clear();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<int64_t>(tokens[i]) >= int64_t{1} << bits)
      throw UserError("token {} does not fit into {} bytes; write the corpus with 4 bytes a token", tokens[i],
                      layout_.width);
    const uint32_t mark = counts.empty() || counts[i] != 0 ? 0 : uint32_t{1} << bits;
    const uint32_t value = static_cast<uint32_t>(tokens[i]) | mark;
    if (layout_.width == 2)
      put<uint16_t>(encoded_, static_cast<uint16_t>(value));
    else
      put<uint32_t>(encoded_, value);
  }
  file_.write(encoded_);
  tokens_ += tokens.size();
}

void TokenFileWriter::append(std::span<const uint16_t> tokens) {
  LOCKSTEP_CHECK(layout_.width == 2 && !layout_.marked, "tokens of 2 bytes in another layout");
  file_.write({reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()});
  tokens_ += tokens.size();
}

void TokenFileWriter::end_document() { ends_.push_back(tokens_); }

int64_t TokenFileWriter::finish() {
  LOCKSTEP_CHECK(tokens_ == (ends_.empty() ? 0 : ends_.back()), "a document is still open");
  file_.write(std::string(static_cast<size_t>((8 - file_.size() % 8) % 8), '\0'));
  file_.write({reinterpret_cast<const char*>(ends_.data()), ends_.size() * 8});
  file_.write_at(0, header());
  file_.finish();
  return file_.size();
}

}  // namespace lockstep

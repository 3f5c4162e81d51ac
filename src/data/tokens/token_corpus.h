// TokenCorpus: what a shard of tokens says about itself: where its tokens lie, how wide they are, and where
// its documents end. Only headers and tables are read here, the latter in pieces; tokens never.
//
//   Megatron  an index (MMIDIDX, version 1) joined with the file of tokens that it describes
//   llm.c     a header of 256 words (magic 20240520 for 16-bit tokens, 20240801 for 32-bit ones), then
//   tokens;
//             nothing is said about documents
//   ours      token_writer.h: a header of 64 bytes, tokens, document ends
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/bytes/byte_source.h"

namespace lockstep {

// The header of our own files: these 8 bytes, u32 version, u32 bytes of a token (2 or 4), u64 tokens, u64
// documents, zeros up to 64 bytes. After the tokens, from the next multiple of 8 on, a u64 for each document:
// how many tokens lie before its end. All little-endian.
//
// Version 2 is of examples whose tokens do not all count in the loss: the highest bit of a token says that it
// is no target. After the number of documents it has two more u64: how many documents were cut when they were
// tokenized, and how many were left out.
inline constexpr std::string_view kTokenMagic = "LOCKTOK\n";
inline constexpr uint32_t kTokenVersion = 1;
inline constexpr uint32_t kMarkedTokenVersion = 2;
inline constexpr int64_t kTokenHeader = 64;

class TokenCorpus {
 public:
  // Reads a few numbers however large the shard is. Throws UserError for a shard that is none of these, and
  // for a header that does not fit the shard's size.
  explicit TokenCorpus(const ByteSource& shard);

  int64_t tokens() const { return tokens_; }
  int width() const { return width_; }  // bytes of a token: 1, 2, 4 or 8
  bool is_signed() const { return signed_; }
  bool marked() const { return marked_; }  // some tokens are no targets
  int64_t cut() const { return cut_; }
  int64_t dropped() const { return dropped_; }
  int64_t offset_of(int64_t token) const { return tokens_at_ + token * width_; }
  // 0: the shard does not say where documents end.
  int64_t documents() const { return documents_; }

  // The ends of documents [first, first + ends.size()), as numbers of tokens. Throws UserError where the
  // tables do not hold together.
  void read_ends(const ByteSource& shard, int64_t first, std::vector<int64_t>& ends) const;
  // Reads every table from beginning to end, checks that it holds together, and calls for each document in
  // turn.
  void for_each_document(const ByteSource& shard,
                         const std::function<void(int64_t document, int64_t begin, int64_t end)>& call) const;

  // Widens `count` tokens. Values that no vocabulary has (negative, or of more than 31 bits) become -1.
  void decode(const char* bytes, int64_t count, int32_t* out) const;
  // The same as targets: those that do not count are `ignored`.
  void decode_targets(const char* bytes, int64_t count, int32_t ignored, int32_t* out) const;
  // "corpus.bin at byte 12", where an index may lie before the tokens.
  std::string place(const ByteSource& shard, int64_t offset) const;

 private:
  void read_megatron(const ByteSource& shard);
  void read_llm_c(const ByteSource& shard, bool wide);
  void read_own(const ByteSource& shard);
  void check_megatron_sequences(const ByteSource& shard) const;

  int64_t tokens_ = 0, documents_ = 0;
  int width_ = 2;
  bool signed_ = false, marked_ = false;
  int64_t cut_ = 0, dropped_ = 0;
  int64_t tokens_at_ = 0;                                                       // in the shard
  int64_t ends_at_ = 0;                                                         // ours
  int64_t sequences_ = 0, lengths_at_ = 0, pointers_at_ = 0, sequence_at_ = 0;  // Megatron
};

}  // namespace lockstep

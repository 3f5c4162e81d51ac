// A vocabulary and the rule by which a word is cut into its tokens: BPE, WordPiece, Unigram, or whole words.
//
// A model is given words: the stretches of text that the pre-tokenizer leaves. Words come again and again, so
// their ids are remembered in a cache of bounded size. Caches and buffers belong to the one who encodes, not
// to the model, which is never changed once it is made.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/hash.h"

namespace lockstep::tok {

// The buffers that models work in.
struct ModelScratch {
  std::vector<uint32_t> symbols;
  std::vector<uint64_t> pairs;
  std::vector<uint32_t> previous, next;
  std::vector<uint64_t> heap;
  std::vector<uint32_t> starts;  // of symbols in the word, where a model needs them
  std::string text;
  struct Best {
    double score;
    uint32_t begin;
    int32_t id;
  };
  std::vector<Best> best;
};

class WordModel {
 public:
  virtual ~WordModel() = default;

  // Appends the ids of one word, valid UTF-8 (or any bytes, for a BPE over bytes).
  virtual void encode_word(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& ids) const = 0;

  // As the file has them.
  virtual std::optional<int32_t> id_of(std::string_view token) const = 0;
  virtual const std::string* token_of(int32_t id) const = 0;
  // How many tokens it has, and one more than the highest id.
  virtual int64_t tokens() const = 0;
  virtual int64_t id_end() const = 0;
};

// Words of at most 24 bytes and 9 ids, in sets of two: the word looked up last stays longest.
class WordCache {
 public:
  static constexpr size_t kMostIds = 9;

  struct Slot {
    uint64_t a = 0, b = 0, c = 0;
    uint8_t bytes = 0;  // 0: empty
    uint8_t count = 0;
    int32_t ids[kMostIds] = {};
  };

  // Of a word of 1 to 24 bytes; null if it is not there.
  const Slot* find(std::string_view word, const WordKey& key) {
    Slot* set = set_of(word, key);
    if (matches(set[0], word, key)) return &set[0];
    if (!matches(set[1], word, key)) return nullptr;
    std::swap(set[0], set[1]);
    return &set[0];
  }
  void put(std::string_view word, const WordKey& key, const int32_t* ids, size_t count);

 private:
  static constexpr size_t kSets = size_t{1} << 14;
  static bool matches(const Slot& slot, std::string_view word, const WordKey& key) {
    return slot.a == key.a && slot.b == key.b && slot.c == key.c && slot.bytes == word.size();
  }
  Slot* set_of(std::string_view word, const WordKey& key) {
    return &slots_[(key.hash(word.size()) & (kSets - 1)) * 2];
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kSets * 2);
};

// Ids of the word, from the cache where it knows them.
template <typename Model>
inline void encode_cached(const Model& model, std::string_view word, WordCache& cache, ModelScratch& scratch,
                          std::vector<int32_t>& ids) {
  if (word.empty()) return;
  if (word.size() > WordKey::kLongest) return model.encode_word(word, scratch, ids);
  const WordKey key(word);
  if (const WordCache::Slot* slot = cache.find(word, key)) {
    if (slot->count == 1) {
      ids.push_back(slot->ids[0]);
    } else {
      ids.insert(ids.end(), slot->ids, slot->ids + slot->count);
    }
    return;
  }
  const size_t before = ids.size();
  model.encode_word(word, scratch, ids);
  cache.put(word, key, ids.data() + before, ids.size() - before);
}

}  // namespace lockstep::tok

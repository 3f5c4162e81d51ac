#include "tokenizer/model.h"

#include <algorithm>

namespace lockstep::tok {

void WordCache::put(std::string_view word, const WordKey& key, const int32_t* ids, size_t count) {
  if (count > kMostIds || word.empty()) return;
  Slot* set = set_of(word, key);
  set[1] = set[0];
  set[0].a = key.a;
  set[0].b = key.b;
  set[0].c = key.c;
  set[0].bytes = static_cast<uint8_t>(word.size());
  set[0].count = static_cast<uint8_t>(count);
  std::copy(ids, ids + count, set[0].ids);
}

}  // namespace lockstep::tok

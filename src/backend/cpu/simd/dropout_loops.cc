#include "backend/cpu/simd/dropout_loops.h"

#include "backend/cpu/simd/philox_vec.h"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// Elements [i, i + n), n <= kWords, whose first mask word is word `skip` of `words`: the ragged ends of a
// range.
void dropout_ragged(const float* x, float* y, int64_t i, int64_t n, const PhiloxVec::Words& words,
                    int64_t skip, const DropoutMask& mask) {
  uint32_t word[PhiloxVec::kWords];
  __builtin_memcpy(word, &words, sizeof(word));
  for (int64_t j = 0; j < n; ++j) y[i + j] = word[skip + j] >= mask.threshold ? x[i + j] * mask.scale : 0.0f;
}

void dropout(const float* x, float* y, int64_t begin, int64_t end, const DropoutMask& mask) {
  if (mask.threshold >> 32) {
    for (int64_t i = begin; i < end; ++i) y[i] = 0.0f;
    return;
  }
  const PhiloxVec random(mask.seed, mask.stream);
  const Vec scale = broadcast(mask.scale);
  const VecWord threshold = VecWord{} + static_cast<uint32_t>(mask.threshold);
  uint64_t index = mask.first_index + static_cast<uint64_t>(begin);
  int64_t i = begin;
  if (const int64_t skip = static_cast<int64_t>(index % 4); skip != 0 && i < end) {
    const int64_t n = 4 - skip < end - i ? 4 - skip : end - i;
    dropout_ragged(x, y, i, n, random.words(index / 4), skip, mask);
    i += n;
    index += static_cast<uint64_t>(n);
  }
  for (; i + PhiloxVec::kWords <= end; i += PhiloxVec::kWords, index += PhiloxVec::kWords) {
    const PhiloxVec::Words words = random.words(index / 4);
    store(y + i, select((VecInt)(words.first >= threshold), load(x + i) * scale, zero()));
    store(y + i + kLanes, select((VecInt)(words.second >= threshold), load(x + i + kLanes) * scale, zero()));
  }
  if (i < end) dropout_ragged(x, y, i, end - i, random.words(index / 4), 0, mask);
}

}  // namespace

extern const DropoutLoops dropout_loops = {dropout};

}  // namespace lockstep::cpu::LOCKSTEP_ISA

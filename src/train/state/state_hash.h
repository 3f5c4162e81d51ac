// SHA-256 over the values of tensors: what says that two runs have the same bits (docs/design.md).
//
// Every kHashedElements values of a tensor have a digest of their own, so that threads share the work; what
// they have in common is a hash over names, types, shapes and these digests.
#pragma once
#include <string>
#include <vector>

#include "backend/backend.h"
#include "train/state/train_state.h"

namespace lockstep {

inline constexpr int64_t kHashedElements = 1 << 18;

// Over the tensors sorted by name: name, dtype and shape of each, then the digests of its pieces in order as
// hexadecimal digits; values of 16-bit types are hashed as f32. `split` brings some bytes of a tensor that is
// not whole, from the given one on, and is asked in the order of the pieces.
std::string sha256_of(Backend& backend, std::vector<const StateTensor*> tensors,
                      const SplitTensors::Read& split = {});
// Of tensors that are whole, and those that are split where `split` reads them.
std::string sha256_of(Backend& backend, const std::vector<StateTensor>& tensors,
                      const SplitTensors::Read& split = {});

}  // namespace lockstep

// Chain: transforms one after another, seen as columns: what they need of the files, what they leave, and
// which of them must be fitted before which.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/transform/transform.h"

namespace lockstep {

using Transforms = std::vector<std::shared_ptr<const Transform>>;

// The columns that must be decoded, in the order in which they are first read. One that somebody wants as a
// number and somebody else as text comes as a number.
std::vector<BlockField> columns_to_decode(const Transforms& transforms);

// What the transforms have made or changed of columns that files have, as the last one leaves it. Throws
// UserError for a column that nobody has, which names the transform that reads it (`names` are theirs).
std::vector<BlockField> made_columns(const Transforms& transforms, const std::vector<std::string>& names,
                                     const std::vector<BlockField>& in_files);

// Which transforms to fit in the next pass over the data and which can be applied in it, given which have
// been fitted or have nothing to fit.
struct FitPass {
  std::vector<bool> fit, apply;
  bool any() const;
};
FitPass next_pass(const Transforms& transforms, const std::vector<bool>& ready);

}  // namespace lockstep

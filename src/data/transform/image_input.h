// Transform image_input: from the columns that image formats give (image: the encoded bytes; class: a name or
// a number) to those of a network: images f32[S,S,3] and labels i32.
//
// The part to take is chosen from the image's extent alone, the image is decoded at the smallest scale that
// still has as many pixels as are wanted, then scaled, mirrored, recoloured and normalised. What is random is
// drawn from Philox keyed by seed, epoch and record. The versions of the libraries that decode are part of
// text().
//
// Settings: size; classes (names in the order of their labels; without them the class is a number) or labels
// (how many numbers there are); those of data/pixels/augmentation.h; resize (what the short side is scaled to
// before the middle is taken); mean and deviation (three numbers each).
#pragma once
#include <memory>

#include "data/transform/transform.h"

namespace lockstep {

std::unique_ptr<Transform> make_image_input(const TransformOptions& options);

}  // namespace lockstep

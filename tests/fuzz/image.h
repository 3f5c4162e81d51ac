// What must hold of any bytes that are given as an image.
#pragma once
#include <string_view>

namespace lockstep::testing {

// Decodes at full size and at an eighth. Both must agree on whether it is an image, on its extent, and give
// the same pixels again. Returns whether it is one. Throws if that does not hold.
bool check_image(std::string_view bytes);

}  // namespace lockstep::testing

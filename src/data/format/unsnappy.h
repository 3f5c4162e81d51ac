// Unpacks snappy. The library that distributions ship calls memcpy for every few bytes, which takes half of
// the time where numbers are compressed: their copies are some bytes long.
#pragma once
#include <span>
#include <string_view>

namespace lockstep {

// Fills `out`. False unless the stored bytes are whole and give exactly as many.
bool unsnappy(std::string_view stored, std::span<char> out);

}  // namespace lockstep

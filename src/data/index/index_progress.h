// IndexProgress: told how far the indexing of a data set is.
#pragma once
#include <cstdint>
#include <functional>

namespace lockstep {

// The bytes looked at and the bytes in all; called from many threads.
using IndexProgress = std::function<void(int64_t done, int64_t all)>;

}  // namespace lockstep

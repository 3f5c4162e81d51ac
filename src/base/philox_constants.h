// The constants of Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011),
// apart from philox.h so that vector code, which includes no container of the standard library, shares them.
#pragma once
#include <cstdint>

namespace lockstep {

inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxMultiplier0 = 0xd2511f53u;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xcd9e8d57u;
inline constexpr uint32_t kPhiloxWeyl0 = 0x9e3779b9u;
inline constexpr uint32_t kPhiloxWeyl1 = 0xbb67ae85u;

}  // namespace lockstep

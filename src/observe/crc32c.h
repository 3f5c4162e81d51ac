// CRC-32C (Castagnoli), as TensorBoard's record files want it.
#pragma once
#include <cstdint>
#include <string_view>

namespace lockstep {

uint32_t crc32c(std::string_view bytes);

}  // namespace lockstep

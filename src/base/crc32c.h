// CRC-32C (Castagnoli), as record files of TensorFlow's kind and our own blocks want it. Uses the processor's
// instruction where it has one; the portable loop gives the same.
#pragma once
#include <cstdint>
#include <string_view>

namespace lockstep {

uint32_t crc32c(std::string_view bytes);
// The same without the instruction.
uint32_t crc32c_portable(std::string_view bytes);

// As it stands in record files: a crc of data that holds crcs itself is weak, so it is rotated and moved.
inline uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

}  // namespace lockstep

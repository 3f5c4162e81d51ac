#include "base/convert.h"

#include <bit>
#include <cstring>

namespace lockstep {
namespace {

template <typename T>
T load_at(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <typename T>
void store_at(void* data, int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// Of to_bf16(), which stands in another file: a loop over a call would be ten times slower.
uint16_t rounded(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace

void convert_elements(DType from, const void* source, DType to, void* target, int64_t count) {
  if (from == to) {
    std::memcpy(target, source, static_cast<size_t>(count * size_of(to)));
  } else if (from == DType::kBF16 && to == DType::kF32) {
    for (int64_t i = 0; i < count; ++i)
      store_at(target, i, static_cast<uint32_t>(load_at<uint16_t>(source, i)) << 16);
  } else if (from == DType::kF32 && to == DType::kBF16) {
    for (int64_t i = 0; i < count; ++i) store_at(target, i, rounded(load_at<float>(source, i)));
  } else {
    for (int64_t i = 0; i < count; ++i) write_element(to, target, i, read_element(from, source, i));
  }
}

}  // namespace lockstep

#include "base/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace lockstep {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int64_t size;
};
constexpr std::array<DTypeInfo, 7> kInfo = {{{DType::kF32, "f32", 4},
                                             {DType::kBF16, "bf16", 2},
                                             {DType::kF16, "f16", 2},
                                             {DType::kI32, "i32", 4},
                                             {DType::kI64, "i64", 8},
                                             {DType::kU8, "u8", 1},
                                             {DType::kBool, "bool", 1}}};

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

}  // namespace

int64_t size_of(DType dtype) { return kInfo[static_cast<size_t>(dtype)].size; }
std::string_view name_of(DType dtype) { return kInfo[static_cast<size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& info : kInfo)
    if (info.name == name) return info.dtype;
  return std::nullopt;
}

bool is_floating(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}
bool is_integer(DType dtype) { return dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kU8; }

uint16_t to_bf16(float value) {
  if (std::isnan(value)) return 0x7fc0;
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00u);
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 6.103515625e-05f) {  // subnormal: steps of 2^-24
    const float steps = std::nearbyint(magnitude * 16777216.0f);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(steps));
  }
  const uint32_t rebased = std::bit_cast<uint32_t>(magnitude) - (112u << 23);
  return static_cast<uint16_t>(sign | ((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13));
}
float from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) / 16777216.0f;
    return sign != 0 ? -magnitude : magnitude;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32: return static_cast<float>(value);
    case DType::kBF16: return from_bf16(to_bf16(static_cast<float>(value)));
    case DType::kF16: return from_f16(to_f16(static_cast<float>(value)));
    case DType::kI32:
    case DType::kI64:
    case DType::kU8: return std::trunc(value);
    case DType::kBool: return value != 0.0 ? 1.0 : 0.0;
  }
  throw InternalError("round_to: unknown dtype {}", static_cast<int>(dtype));
}

double read_element(DType dtype, const void* data, int64_t index) {
  switch (dtype) {
    case DType::kF32: return load_at<float>(data, index);
    case DType::kBF16: return from_bf16(load_at<uint16_t>(data, index));
    case DType::kF16: return from_f16(load_at<uint16_t>(data, index));
    case DType::kI32: return load_at<int32_t>(data, index);
    case DType::kI64: return static_cast<double>(load_at<int64_t>(data, index));
    case DType::kU8:
    case DType::kBool: return load_at<uint8_t>(data, index);
  }
  throw InternalError("read_element: unknown dtype {}", static_cast<int>(dtype));
}

void write_element(DType dtype, void* data, int64_t index, double value) {
  switch (dtype) {
    case DType::kF32: return store_at(data, index, static_cast<float>(value));
    case DType::kBF16: return store_at(data, index, to_bf16(static_cast<float>(value)));
    case DType::kF16: return store_at(data, index, to_f16(static_cast<float>(value)));
    case DType::kI32: return store_at(data, index, static_cast<int32_t>(value));
    case DType::kI64: return store_at(data, index, static_cast<int64_t>(value));
    case DType::kU8: return store_at(data, index, static_cast<uint8_t>(value));
    case DType::kBool: return store_at(data, index, static_cast<uint8_t>(value != 0.0));
  }
  throw InternalError("write_element: unknown dtype {}", static_cast<int>(dtype));
}

}  // namespace lockstep

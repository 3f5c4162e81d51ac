// Element types of tensors, their sizes, names and conversions to and from double.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep {

enum class DType : uint8_t { kF32, kBF16, kF16, kI32, kI64, kU8, kBool };

int64_t size_of(DType dtype);
std::string_view name_of(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);
bool is_floating(DType dtype);
bool is_integer(DType dtype);

// The 16-bit formats round to nearest even; a NaN becomes the one canonical quiet NaN of the format.
uint16_t to_bf16(float value);
float from_bf16(uint16_t bits);
uint16_t to_f16(float value);
float from_f16(uint16_t bits);

// What a value becomes when it is stored in dtype and read back. Used by the interpreter.
double round_to(DType dtype, double value);

// Reads or writes element `index` of a buffer of dtype as a double (i64 is exact up to 2^53).
double read_element(DType dtype, const void* data, int64_t index);
void write_element(DType dtype, void* data, int64_t index, double value);

}  // namespace lockstep

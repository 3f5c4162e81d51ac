// The header of a safetensors file: which tensor lies where. Layout of such a file:
//
//   u64 little-endian: length of the JSON text | JSON text, padded with spaces | the tensors' bytes without
//   gaps
//
// The text is an object {"__metadata__": {text: text}, NAME: {"dtype": .., "shape": [..], "data_offsets": [b,
// e]}}. What plan_safetensors writes is byte for byte what the format's reference writer produces for the
// same tensors, so any reader of the format takes it. parse_safetensors_header trusts nothing: what it
// returns lies inside the file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "safetensors/tensor_spec.h"

namespace lockstep {

// A tensor and the bytes [begin, end) of the file that hold it.
struct TensorEntry {
  TensorSpec tensor;
  int64_t begin = 0;
  int64_t end = 0;

  bool operator==(const TensorEntry&) const = default;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of the file: each begins where the one before it ends
  SafetensorsMetadata metadata;
  int64_t data_begin = 0;  // the length prefix and the text

  int64_t file_bytes() const { return tensors.empty() ? data_begin : tensors.back().end; }
  bool operator==(const SafetensorsHeader&) const = default;
};

inline constexpr int64_t kSafetensorsPrefix = 8;
// The limit of the reference implementation.
inline constexpr int64_t kMaxSafetensorsText = 100'000'000;

// Places the tensors: wider element types first, so that every tensor is aligned to its elements, then by
// name. Throws UserError for a name that is empty, reserved, given twice or not UTF-8.
SafetensorsHeader plan_safetensors(std::vector<TensorSpec> tensors, SafetensorsMetadata metadata);
// The bytes of the file before its data: prefix, text and padding.
std::string safetensors_header_bytes(const SafetensorsHeader& header);

// How many bytes a file of file_bytes has before its data, from the first 8 of them. Throws UserError.
int64_t safetensors_data_begin(std::span<const std::byte> prefix, int64_t file_bytes,
                               const std::string& path);
// `bytes` are all bytes before the data. Throws UserError that names the path, the tensor and what is wrong
// with it.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> bytes, int64_t file_bytes,
                                           const std::string& path);

// "F32" for kF32; null for a name that is none of ours.
const char* safetensors_dtype_name(DType dtype);
const DType* find_safetensors_dtype(std::string_view name);

}  // namespace lockstep

#include "safetensors/header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

struct DTypeName {
  DType dtype;
  const char* name;
};

// In the order in which the reference writer places tensors.
constexpr std::array<DTypeName, 7> kDTypes = {{{DType::kI64, "I64"},
                                               {DType::kF32, "F32"},
                                               {DType::kI32, "I32"},
                                               {DType::kBF16, "BF16"},
                                               {DType::kF16, "F16"},
                                               {DType::kU8, "U8"},
                                               {DType::kBool, "BOOL"}}};

size_t rank_of(DType dtype) {
  const auto* found = std::ranges::find(kDTypes, dtype, &DTypeName::dtype);
  LOCKSTEP_CHECK(found != kDTypes.end(), "{} has no name in safetensors", name_of(dtype));
  return static_cast<size_t>(found - kDTypes.begin());
}

std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw UserError("a tensor or metadata name is not UTF-8: {}",
                    nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  }
}

std::string header_text(const SafetensorsHeader& header) {
  std::string text = "{";
  if (!header.metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : header.metadata) text += quoted(key) + ":" + quoted(value) + ",";
    text.back() = '}';
    text += ',';
  }
  for (const auto& [tensor, begin, end] : header.tensors)
    text +=
        fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},", quoted(tensor.name),
                    safetensors_dtype_name(tensor.dtype), fmt::join(tensor.shape.extents(), ","),
                    begin - header.data_begin, end - header.data_begin);
  if (text.back() == ',') text.pop_back();
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

const char* safetensors_dtype_name(DType dtype) { return kDTypes[rank_of(dtype)].name; }

const DType* find_safetensors_dtype(std::string_view name) {
  const auto* found = std::ranges::find_if(
      kDTypes, [&](const DTypeName& entry) { return std::string_view(entry.name) == name; });
  return found == kDTypes.end() ? nullptr : &found->dtype;
}

SafetensorsHeader plan_safetensors(std::vector<TensorSpec> tensors, SafetensorsMetadata metadata) {
  std::ranges::sort(tensors, [](const TensorSpec& a, const TensorSpec& b) {
    return std::pair(rank_of(a.dtype), std::string_view(a.name)) <
           std::pair(rank_of(b.dtype), std::string_view(b.name));
  });
  std::vector<std::string_view> names;
  for (const TensorSpec& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    throw UserError("tensor {} is given twice", *twice);
  for (const std::string_view name : {std::string_view(), std::string_view("__metadata__")})
    if (std::ranges::binary_search(names, name)) throw UserError("a tensor cannot be named \"{}\"", name);

  SafetensorsHeader header{{}, std::move(metadata), 0};
  int64_t end = 0;
  for (TensorSpec& tensor : tensors) {
    const int64_t begin = end;
    end += tensor.bytes();
    header.tensors.push_back({std::move(tensor), begin, end});
  }
  const auto text_bytes = static_cast<int64_t>(header_text(header).size());
  if (text_bytes > kMaxSafetensorsText)
    throw UserError("{} tensors need a header of {} bytes; safetensors allows {}", header.tensors.size(),
                    text_bytes, kMaxSafetensorsText);
  header.data_begin = kSafetensorsPrefix + text_bytes;
  for (TensorEntry& entry : header.tensors) {
    entry.begin += header.data_begin;
    entry.end += header.data_begin;
  }
  return header;
}

std::string safetensors_header_bytes(const SafetensorsHeader& header) {
  const std::string text = header_text(header);
  const uint64_t length = text.size();
  std::string bytes(kSafetensorsPrefix, '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + text;
}

}  // namespace lockstep

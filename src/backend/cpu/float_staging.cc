#include "backend/cpu/float_staging.h"

#include <cstring>

#include "backend/cpu/simd/simd.h"
#include "base/error.h"

namespace lockstep::cpu {
namespace {

constexpr int64_t kLine = 64;

}  // namespace

int FloatStaging::add(const Type& type) {
  slots_.push_back({type.dtype, type.shape.numel(), bytes_});
  if (type.dtype != DType::kF32)
    bytes_ += ceil_div(type.shape.numel() * static_cast<int64_t>(sizeof(float)), kLine) * kLine;
  return static_cast<int>(slots_.size()) - 1;
}

float* FloatStaging::target(int slot, void* data, void* workspace) const {
  const Slot& s = slots_[static_cast<size_t>(slot)];
  if (s.dtype == DType::kF32) return static_cast<float*>(data);
  return reinterpret_cast<float*>(static_cast<char*>(workspace) + s.offset);
}

const float* FloatStaging::read(int slot, const void* data, void* workspace) const {
  const Slot& s = slots_[static_cast<size_t>(slot)];
  if (s.dtype == DType::kF32) return static_cast<const float*>(data);
  float* to = target(slot, nullptr, workspace);
  for_rows(context_, s.numel, kTaskElements, [&](int64_t begin, int64_t end) {
    load_floats(context_, s.dtype, data, begin, end - begin, to + begin);
  });
  return to;
}

void FloatStaging::write(int slot, void* data, void* workspace) const {
  const Slot& s = slots_[static_cast<size_t>(slot)];
  if (s.dtype == DType::kF32) return;
  const float* from = target(slot, nullptr, workspace);
  for_rows(context_, s.numel, kTaskElements, [&](int64_t begin, int64_t end) {
    store_floats(context_, s.dtype, from + begin, data, begin, end - begin);
  });
}

void load_floats(const CpuContext& context, DType dtype, const void* data, int64_t first, int64_t count,
                 float* to) {
  switch (dtype) {
    case DType::kF32:
      std::memcpy(to, static_cast<const float*>(data) + first, static_cast<size_t>(count) * sizeof(float));
      return;
    case DType::kBF16:
      return context.simd.pointwise.from_bf16(to, static_cast<const uint16_t*>(data) + first, count);
    case DType::kF16:
      return context.simd.pointwise.from_f16(to, static_cast<const uint16_t*>(data) + first, count);
    default: throw InternalError("load_floats: {} is not floating", name_of(dtype));
  }
}

void store_floats(const CpuContext& context, DType dtype, const float* from, void* data, int64_t first,
                  int64_t count) {
  switch (dtype) {
    case DType::kF32:
      std::memcpy(static_cast<float*>(data) + first, from, static_cast<size_t>(count) * sizeof(float));
      return;
    case DType::kBF16:
      return context.simd.pointwise.to_bf16(static_cast<uint16_t*>(data) + first, from, count);
    case DType::kF16: return context.simd.pointwise.to_f16(static_cast<uint16_t*>(data) + first, from, count);
    default: throw InternalError("store_floats: {} is not floating", name_of(dtype));
  }
}

}  // namespace lockstep::cpu

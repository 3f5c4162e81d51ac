#include "backend/cpu/tile_run.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/simd/simd.h"
#include "base/error.h"

namespace lockstep::cpu {
namespace {

void* element(void* data, DType dtype, int64_t index) {
  return static_cast<char*>(data) + index * size_of(dtype);
}

void load(const PointwiseLoops& loops, DType dtype, float* out, const void* in, int64_t n) {
  switch (dtype) {
    case DType::kF32: std::memcpy(out, in, static_cast<size_t>(n) * sizeof(float)); return;
    case DType::kBF16: loops.from_bf16(out, static_cast<const uint16_t*>(in), n); return;
    case DType::kF16: loops.from_f16(out, static_cast<const uint16_t*>(in), n); return;
    case DType::kI32: loops.from_i32(out, static_cast<const int32_t*>(in), n); return;
    case DType::kU8:
    case DType::kBool: loops.from_u8(out, static_cast<const uint8_t*>(in), n); return;
    case DType::kI64: break;
  }
  throw InternalError("a tile program cannot read {}", name_of(dtype));
}

void store(const PointwiseLoops& loops, DType dtype, void* out, const float* in, int64_t n) {
  switch (dtype) {
    case DType::kF32: std::memcpy(out, in, static_cast<size_t>(n) * sizeof(float)); return;
    case DType::kBF16: loops.to_bf16(static_cast<uint16_t*>(out), in, n); return;
    case DType::kF16: loops.to_f16(static_cast<uint16_t*>(out), in, n); return;
    case DType::kI32: loops.to_i32(static_cast<int32_t*>(out), in, n); return;
    case DType::kU8: loops.to_u8(static_cast<uint8_t*>(out), in, n); return;
    case DType::kBool: loops.to_bool(static_cast<uint8_t*>(out), in, n); return;
    case DType::kI64: break;
  }
  throw InternalError("a tile program cannot write {}", name_of(dtype));
}

// Functions that take longer than their operands take to arrive from memory. While they run, memory would be
// idle: the next tile is fetched meanwhile, a few lines at a time (a quarter off the time of bias and gelu
// over 12 MB).
bool is_slow(Scalar f) {
  return (f >= Scalar::exp && f <= Scalar::silu_grad && f != Scalar::relu) || f == Scalar::pow;
}
constexpr int64_t kPrefetchStep = 128;

}  // namespace

// A result may overwrite an operand only once nothing reads that operand any more; until then its store
// waits.
TileRun::TileRun(const TileSteps& steps, const CpuContext& context, const KernelArgs& args)
    : steps_(steps), loops_(context.simd.pointwise), args_(args) {
  for (int i = 0; i < static_cast<int>(steps_.steps.size()); ++i) {
    const TileStep& step = steps_.steps[static_cast<size_t>(i)];
    if (!step.may_wait) continue;
    for (size_t k = 0; k < steps_.operands.size(); ++k)
      if (args_.inputs[k] == args_.outputs[static_cast<size_t>(step.result)] &&
          steps_.operands[k].last_read > i)
        deferred_ |= uint64_t{1} << step.result;
  }
}

void TileRun::begin(float* scratch) const {
  const Tile widest{0, std::max<int64_t>(steps_.layout.rows_per_tile(), 1), 0, steps_.layout.columns()};
  for (size_t k = 0; k < steps_.operands.size(); ++k)
    if (steps_.operands[k].constant) prepare(k, {widest, scratch, nullptr});
}

void TileRun::evaluate(const TilePlace& place) const {
  for (size_t k = 0; k < steps_.operands.size(); ++k)
    if (!steps_.operands[k].constant) prepare(k, place);
  for (const TileStep& step : steps_.steps) execute(step, place);
  if (deferred_ != 0) store_deferred(place);
}

void* TileRun::stored_at(const TileStep& step, const TilePlace& place) const {
  return element(args_.outputs[static_cast<size_t>(step.result)], step.dtype,
                 steps_.layout.offset(place.tile));
}

float* TileRun::value_of(const TileStep& step, const TilePlace& place) const {
  if (in_memory(step)) return static_cast<float*>(stored_at(step, place));
  return step.summed ? place.terms : slot(place, step.slot);
}

// Gathers an operand's elements for a tile in its slot.
void TileRun::prepare(size_t k, const TilePlace& place) const {
  const TileOperand& operand = steps_.operands[k];
  if (operand.slot < 0) return;
  const Tile& tile = place.tile;
  const DType dtype = operand.type.dtype;
  float* out = slot(place, operand.slot);
  if (operand.access == Access::kFull) {
    load(loops_, dtype, out, element(args_.inputs[k], dtype, steps_.layout.offset(tile)), tile.elements());
    return;
  }
  const int64_t stride = steps_.layout.column_stride(k);
  for (int64_t r = 0; r < tile.rows; ++r, out += tile.columns) {
    const int64_t at = steps_.layout.row_offset(k, tile.row + r) + tile.column * stride;
    if (stride == 0)
      loops_.fill(out, read_scalar(k, at), tile.columns);
    else if (operand.access == Access::kRow && r > 0)
      std::memcpy(out, out - tile.columns, static_cast<size_t>(tile.columns) * sizeof(float));
    else
      load(loops_, dtype, out, element(args_.inputs[k], dtype, at), tile.columns);
  }
}

float TileRun::read_scalar(size_t k, int64_t index) const {
  const DType dtype = steps_.operands[k].type.dtype;
  if (dtype == DType::kF32) return static_cast<const float*>(args_.inputs[k])[index];
  return static_cast<float>(read_element(dtype, args_.inputs[k], index));
}

float TileRun::scalar(const TileArgument& argument, const Tile& tile) const {
  if (argument.kind == TileSource::Kind::kNumber) return argument.number;
  const auto k = static_cast<size_t>(argument.index);
  return read_scalar(k, steps_.layout.row_offset(k, tile.row));
}

const float* TileRun::tile_of(const TileArgument& argument, const TilePlace& place) const {
  const auto k = static_cast<size_t>(argument.index);
  if (argument.kind == TileSource::Kind::kInstruction) return value_of(steps_.steps[k], place);
  const TileOperand& operand = steps_.operands[k];
  const Tile& tile = place.tile;
  if (operand.slot >= 0) return slot(place, operand.slot) + (operand.constant ? tile.column : 0);
  const auto* data = static_cast<const float*>(args_.inputs[k]);
  if (operand.access == Access::kFull) return data + steps_.layout.offset(tile);
  return data + steps_.layout.row_offset(k, tile.row) + tile.column;
}

void TileRun::execute(const TileStep& step, const TilePlace& place) const {
  float* out = value_of(step, place);
  const auto f = static_cast<size_t>(step.function);
  const TileArgument& a = step.arguments[0];
  const TileArgument& b = step.arguments[1];
  if (arity(step.function) != 2 || a.scalar == b.scalar)
    execute_on_tiles(step, place, out);
  else if (b.scalar)
    loops_.tile_scalar[f](out, tile_of(a, place), scalar(b, place.tile), place.tile.elements());
  else
    loops_.scalar_tile[f](out, scalar(a, place.tile), tile_of(b, place), place.tile.elements());
  if (step.dtype != DType::kF32) round(step, place, out);
}

void TileRun::execute_on_tiles(const TileStep& step, const TilePlace& place, float* out) const {
  std::array<const float*, 3> tiles{};
  for (size_t k = 0; k < static_cast<size_t>(arity(step.function)); ++k) {
    const TileArgument& argument = step.arguments[k];
    if (!argument.scalar) {
      tiles[k] = tile_of(argument, place);
      continue;
    }
    float* filled = slot(place, step.filled[k]);
    loops_.fill(filled, scalar(argument, place.tile), place.tile.elements());
    tiles[k] = filled;
  }
  const auto loop = loops_.tile[static_cast<size_t>(step.function)];
  const int64_t n = place.tile.elements();
  if (place.next < 0 || !is_slow(step.function)) return loop(out, tiles[0], tiles[1], tiles[2], n);
  for (int64_t i = 0; i < n; i += kPrefetchStep) {
    prefetch(place.next + i, kPrefetchStep);
    for (size_t k = 0; k < static_cast<size_t>(arity(step.function)); ++k)
      tiles[k] += i == 0 ? 0 : kPrefetchStep;
    loop(out + i, tiles[0], tiles[1], tiles[2], std::min(kPrefetchStep, n - i));
  }
}

// The lines that a later tile begins with: operands to be read and results to be written.
void TileRun::prefetch(int64_t begin, int64_t count) const {
  constexpr int64_t kLine = 64;
  const auto touch = [&](const void* data, DType dtype) {
    const int64_t bytes = size_of(dtype);
    const char* first = static_cast<const char*>(data) + begin * bytes;
    for (int64_t byte = 0; byte < count * bytes; byte += kLine) __builtin_prefetch(first + byte);
  };
  for (size_t k = 0; k < steps_.operands.size(); ++k)
    if (steps_.operands[k].access == Access::kFull) touch(args_.inputs[k], steps_.operands[k].type.dtype);
  for (const TileStep& step : steps_.steps)
    if (step.result >= 0) touch(args_.outputs[static_cast<size_t>(step.result)], step.dtype);
}

void TileRun::round(const TileStep& step, const TilePlace& place, float* value) const {
  const bool stored = step.result >= 0 && !is_deferred(step.result);
  void* out = stored ? stored_at(step, place) : slot(place, steps_.staging);
  store(loops_, step.dtype, out, value, place.tile.elements());
  if (step.read_later || !stored) load(loops_, step.dtype, value, out, place.tile.elements());
}

void TileRun::store_deferred(const TilePlace& place) const {
  for (const TileStep& step : steps_.steps)
    if (step.result >= 0 && is_deferred(step.result))
      store(loops_, step.dtype, stored_at(step, place), value_of(step, place), place.tile.elements());
}

}  // namespace lockstep::cpu

#include "backend/cpu/tile_steps.h"

#include <algorithm>

#include "backend/cpu/kernel_def.h"
#include "base/error.h"

namespace lockstep::cpu {
namespace {

std::vector<Shape> shapes_of(const std::vector<Type>& types) {
  std::vector<Shape> shapes;
  for (const Type& type : types) shapes.push_back(type.shape);
  return shapes;
}

}  // namespace

TileSteps::TileSteps(const TileCode& code) : layout(code.shape, shapes_of(code.operands), kTileElements) {
  place_operands(code);
  make_steps(code);
  const int64_t elements = code.summed >= 0 ? kTileElements : std::max<int64_t>(layout.largest_tile(), 1);
  // Not a power of two: scratch tiles at equal offsets in their pages would compete for the same cache lines.
  stride = ceil_div(elements, 16) * 16 + 16;
}

void TileSteps::place_operands(const TileCode& code) {
  const bool several_rows = layout.rows_per_tile() > 1;
  for (size_t i = 0; i < code.operands.size(); ++i) {
    TileOperand operand{code.operands[i], layout.access(i)};
    switch (operand.access) {
      case Access::kScalar: operand.scalar = operand.constant = true; break;
      case Access::kColumn: operand.scalar = !several_rows; break;
      case Access::kStrided: operand.scalar = !several_rows && layout.column_stride(i) == 0; break;
      case Access::kRow: operand.constant = layout.rows_per_tile() > 0; break;
      case Access::kFull: break;
    }
    const bool in_place =
        operand.type.dtype == DType::kF32 && (operand.access == Access::kFull || !several_rows);
    if (!operand.scalar && !in_place) operand.slot = slots++;
    if (operand.slot < 0 && !operand.scalar) operand.constant = false;
    operands.push_back(operand);
  }
}

void TileSteps::make_steps(const TileCode& code) {
  std::vector<int> last_read(code.instructions.size(), -1);
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    const TileInstruction& instruction = code.instructions[i];
    TileStep step{.function = instruction.function, .dtype = instruction.dtype};
    for (int k = 0; k < arity(instruction.function); ++k) {
      const TileSource& source = instruction.sources[static_cast<size_t>(k)];
      TileArgument& argument = step.arguments[static_cast<size_t>(k)];
      argument = {source.kind, source.index, source.kind == TileSource::Kind::kNumber, source.number};
      if (source.kind == TileSource::Kind::kOperand) {
        TileOperand& operand = operands[static_cast<size_t>(source.index)];
        argument.scalar = operand.scalar;
        operand.last_read = static_cast<int>(i);
      }
      if (source.kind == TileSource::Kind::kInstruction)
        last_read[static_cast<size_t>(source.index)] = static_cast<int>(i);
    }
    step.summed = static_cast<int>(i) == code.summed;
    steps.push_back(step);
  }
  for (size_t r = 0; r < code.results.size(); ++r) {
    const auto i = static_cast<size_t>(code.results[r]);
    LOCKSTEP_CHECK(steps[i].result < 0, "instruction {} is stored twice", i);
    steps[i].result = static_cast<int>(r);
  }
  assign_slots(code.shape, last_read);
  add_extra_slots();
}

// Linear scan: a slot is free again after the last reader of its value. Results keep theirs to the end, since
// a store may have to wait for a reader of the memory that it goes to.
void TileSteps::assign_slots(const Shape& shape, const std::vector<int>& last_read) {
  std::vector<int> free;
  std::vector<int> until;  // per step: when its slot is given back
  const int end = static_cast<int>(steps.size());
  for (int i = 0; i < end; ++i) {
    for (int j = 0; j < i; ++j)
      if (until[static_cast<size_t>(j)] == i) free.push_back(steps[static_cast<size_t>(j)].slot);
    TileStep& step = steps[static_cast<size_t>(i)];
    step.read_later = last_read[static_cast<size_t>(i)] > i || step.summed;
    for (const TileOperand& operand : operands) {
      const bool may_share = step.result >= 0 && operand.type.shape == shape &&
                             size_of(operand.type.dtype) == size_of(step.dtype);
      step.may_wait = step.may_wait || (may_share && operand.last_read > i);
    }
    const bool in_memory = step.result >= 0 && step.dtype == DType::kF32 && !step.may_wait;
    if (in_memory || step.summed) {
      until.push_back(-1);
      continue;
    }
    until.push_back(step.result >= 0 ? end : std::max(last_read[static_cast<size_t>(i)], i + 1));
    if (free.empty()) free.push_back(slots++);
    step.slot = free.back();
    free.pop_back();
  }
}

void TileSteps::add_extra_slots() {
  std::array<int, 3> fillers{-1, -1, -1};
  for (TileStep& step : steps) {
    const int arguments = arity(step.function);
    const bool has_loop = arguments == 2 && step.arguments[0].scalar != step.arguments[1].scalar;
    for (size_t k = 0; k < static_cast<size_t>(arguments); ++k) {
      if (!step.arguments[k].scalar || has_loop) continue;
      if (fillers[k] < 0) fillers[k] = slots++;
      step.filled[k] = fillers[k];
    }
    const bool rounds_in_scratch = step.dtype != DType::kF32 && (step.result < 0 || step.may_wait);
    if (rounds_in_scratch && staging < 0) staging = slots++;
  }
}

}  // namespace lockstep::cpu

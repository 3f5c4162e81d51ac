// TileCode: what a tile program computes, as tile_program.h runs it.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "backend/cpu/simd/pointwise_loops.h"
#include "graph/type.h"

namespace lockstep::cpu {

// Where an instruction takes an argument from.
struct TileSource {
  enum class Kind : uint8_t { kOperand, kInstruction, kNumber };
  Kind kind = Kind::kNumber;
  int index = 0;
  float number = 0;

  static TileSource operand(int index) { return {Kind::kOperand, index, 0}; }
  static TileSource instruction(int index) { return {Kind::kInstruction, index, 0}; }
  static TileSource constant(float number) { return {Kind::kNumber, 0, number}; }
};

struct TileInstruction {
  Scalar function = Scalar::copy;
  std::array<TileSource, 3> sources{};  // arity(function) of them
  DType dtype = DType::kF32;            // what the value is rounded to
};

struct TileCode {
  Shape shape;
  std::vector<Type> operands = {};  // of any shape that broadcasts to `shape`; not i64
  std::vector<TileInstruction> instructions = {};
  std::vector<int> results = {};  // instructions whose values are stored, each listed once
  int summed = -1;                // the instruction whose values are the terms of a sum, or none
};

}  // namespace lockstep::cpu

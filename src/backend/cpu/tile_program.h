// TileProgram: a straight line of scalar functions evaluated over a whole tensor, tile by tile.
//
// Every intermediate lives in a tile that stays in the first cache; memory is read once per operand and
// written once per result. Arithmetic is f32. Operands of other types are converted when read; a value of a
// 16-bit, integer or bool type is rounded to it as soon as it is made, so that a program gives the bits that
// its instructions would give one kernel at a time. A result may share the memory of a full operand of the
// same shape and element size.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/simd/pointwise_loops.h"
#include "backend/cpu/sums.h"
#include "backend/cpu/tile_layout.h"
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

class TileProgram {
 public:
  explicit TileProgram(TileCode code);

  int64_t workspace_bytes(const CpuContext& context) const;
  void run(const CpuContext& context, const KernelArgs& args) const;
  // The same, driven by a sum: results are stored as the terms are asked for, and each must be asked for
  // once.
  std::unique_ptr<TermSource> terms(const CpuContext& context, const KernelArgs& args) const;

 private:
  // An instruction made ready: where its arguments are, and where its value goes.
  struct Argument {
    TileSource::Kind kind = TileSource::Kind::kNumber;
    int index = 0;
    bool scalar = false;  // one number for the whole tile
    float number = 0;
  };
  struct Step {
    Scalar function;
    std::array<Argument, 3> arguments{};
    DType dtype;
    int slot = -1;    // scratch tile; none when the value is always made where it is stored
    int result = -1;  // which result it is, or -1
    bool read_later = false;
    bool may_wait = false;                  // an operand whose memory the result could share is read later
    std::array<int, 3> filled{-1, -1, -1};  // scratch tiles for scalars that the function needs as tiles
  };
  struct Operand {
    Type type;
    Access access;
    bool scalar = false;    // one number per tile
    bool constant = false;  // the same in every tile
    int slot = -1;          // scratch tile, when its elements cannot be used where they lie
    int last_read = -1;
  };
  class Run;
  class Terms;

  void place_operands();
  void make_steps();
  void assign_slots(const std::vector<int>& last_read);
  void add_extra_slots();
  bool may_share(const Operand& operand, const Step& step) const;

  TileCode code_;
  TileLayout layout_;
  std::vector<Operand> operands_;
  std::vector<Step> steps_;
  int slots_ = 0;      // scratch tiles per thread
  int staging_ = -1;   // the one to round through
  int gathered_ = -1;  // the one to gather terms in
  int64_t slot_elements_ = 0;
  int64_t thread_scratch() const { return slots_ * slot_elements_; }
};

}  // namespace lockstep::cpu

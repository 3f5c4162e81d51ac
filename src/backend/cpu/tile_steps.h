// TileSteps: tile code made ready to run. Decides how each operand is brought into a tile, which scratch tile
// each value lives in, and which results may have to wait before they are stored.
#pragma once
#include "backend/cpu/tile_code.h"
#include "backend/cpu/tile_layout.h"

namespace lockstep::cpu {

// 4 kB per tile. Operands, intermediates and results fit the first cache together; and a tile is short enough
// that the processor has prefetched the next one's operands by the time the slower functions of this one are
// done.
inline constexpr int64_t kTileElements = 1024;

struct TileArgument {
  TileSource::Kind kind = TileSource::Kind::kNumber;
  int index = 0;
  bool scalar = false;  // one number for the whole tile
  float number = 0;
};

struct TileStep {
  Scalar function = Scalar::copy;
  std::array<TileArgument, 3> arguments{};
  DType dtype = DType::kF32;
  int slot = -1;    // scratch tile; none when the value is always made where it is stored or summed
  int result = -1;  // which result it is, or -1
  bool summed = false;
  bool read_later = false;
  bool may_wait = false;                  // an operand whose memory the result could share is read later
  std::array<int, 3> filled{-1, -1, -1};  // scratch tiles for scalars that the function needs as tiles
};

struct TileOperand {
  Type type;
  Access access = Access::kFull;
  bool scalar = false;    // one number per tile
  bool constant = false;  // the same in every tile
  int slot = -1;          // scratch tile, when its elements cannot be used where they lie
  int last_read = -1;
};

struct TileSteps {
  explicit TileSteps(const TileCode& code);

  TileLayout layout;
  std::vector<TileOperand> operands;
  std::vector<TileStep> steps;
  int slots = 0;       // scratch tiles
  int staging = -1;    // the one to round through
  int64_t stride = 0;  // floats from one scratch tile to the next

 private:
  void place_operands(const TileCode& code);
  void make_steps(const TileCode& code);
  void assign_slots(const Shape& shape, const std::vector<int>& last_read);
  void add_extra_slots();
};

}  // namespace lockstep::cpu

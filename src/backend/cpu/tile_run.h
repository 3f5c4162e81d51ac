// TileRun: one execution of tile steps. Addresses are known; each thread brings its scratch tiles.
#pragma once
#include "backend/cpu/kernel_def.h"
#include "backend/cpu/tile_steps.h"

namespace lockstep::cpu {

// A tile and the memory that evaluating it may use.
struct TilePlace {
  Tile tile;
  float* scratch = nullptr;  // slots * stride floats
  float* terms = nullptr;    // where a summed value goes when it is not stored as f32
  int64_t next = -1;         // the first element of the tile that comes after, or -1
};

class TileRun {
 public:
  TileRun(const TileSteps& steps, const CpuContext& context, const KernelArgs& args);

  // Brings in what is the same in every tile; once before a thread evaluates any.
  void begin(float* scratch) const;
  void evaluate(const TilePlace& place) const;

  // Where a step's value is: f32 results are computed where they are stored.
  float* value_of(const TileStep& step, const TilePlace& place) const;
  bool in_memory(const TileStep& step) const {
    return step.result >= 0 && step.dtype == DType::kF32 && !is_deferred(step.result);
  }

 private:
  float* slot(const TilePlace& place, int index) const { return place.scratch + index * steps_.stride; }
  bool is_deferred(int result) const { return ((deferred_ >> result) & 1) != 0; }
  void* stored_at(const TileStep& step, const TilePlace& place) const;

  // Of operand k.
  void prepare(size_t k, const TilePlace& place) const;
  float read_scalar(size_t k, int64_t index) const;
  float scalar(const TileArgument& argument, const Tile& tile) const;
  const float* tile_of(const TileArgument& argument, const TilePlace& place) const;
  void execute(const TileStep& step, const TilePlace& place) const;
  void execute_on_tiles(const TileStep& step, const TilePlace& place, float* out) const;
  void prefetch(int64_t begin, int64_t count) const;
  void round(const TileStep& step, const TilePlace& place, float* value) const;
  void store_deferred(const TilePlace& place) const;

  const TileSteps& steps_;
  const PointwiseLoops& loops_;
  const KernelArgs& args_;
  uint64_t deferred_ = 0;  // results that may not be stored before the end of a tile
};

}  // namespace lockstep::cpu

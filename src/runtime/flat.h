// FlatLayout: where each parameter lies in one flat buffer. Gradients and optimizer state share the layout.
// The buffers that microbatches are summed in have the model's statistics behind the gradients: gradients in
// the type that parameters are stored in, statistics in f32.
//
// Every parameter begins on a block edge. Blocks have a fixed number of elements, so that ZeRO edges, norms
// and hashes fall on the same places for any number of workers.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.h"
#include "graph/graph.h"

namespace lockstep {

inline constexpr int64_t kFlatBlock = 1024;  // elements

struct FlatEntry {
  std::string name;
  Shape shape;
  int64_t offset = 0;  // in elements
  int64_t block = 0;   // of the model, which first uses it: how many marks (ops/checkpoint.cc) come before
  int stage = 0;  // of a pipeline; where a worker has several, their gradients are final at different times
};

// A parameter that is not trained: it keeps the type it is stored in, and has no gradient and no optimizer
// state.
struct FrozenParam {
  std::string name;
  Type type;
};

class FlatLayout {
 public:
  FlatLayout() = default;
  // f32 or bf16: of the parameters and their gradients.
  explicit FlatLayout(DType dtype) : dtype_(dtype) {}

  // All parameters come before the first statistic.
  void add(std::string name, const Shape& shape, int64_t block = 0, int stage = 0);
  void add_statistic(std::string name, const Shape& shape);
  std::span<const FlatEntry> entries() const { return entries_; }        // parameters
  std::span<const FlatEntry> statistics() const { return statistics_; }  // offsets from numel() on
  const FlatEntry& find(std::string_view name) const;
  DType dtype() const { return dtype_; }
  int64_t numel() const { return numel_; }  // of parameters; padding included
  int64_t statistics_numel() const { return statistics_numel_; }
  // Of the buffers that microbatches are summed in: gradients, then statistics.
  int64_t sums_numel() const { return numel_ + statistics_numel_; }
  DType sums_dtype(int64_t element) const { return element < numel_ ? dtype_ : DType::kF32; }
  // The bytes that lie before an element of such a buffer; of sums_numel(), all of them.
  int64_t sums_offset(int64_t element) const;
  int64_t sums_bytes() const { return sums_offset(sums_numel()); }

 private:
  DType dtype_ = DType::kF32;
  std::vector<FlatEntry> entries_, statistics_;
  int64_t numel_ = 0, statistics_numel_ = 0;
};

// The parameters of a graph fresh from autodiff (no other pass may have moved nodes: the layout decides the
// order of sums in norms, so it must be a function of the model alone) in the order in which backward
// finishes their gradients: buckets of neighbours can then be reduced while backward goes on. Statistics
// follow in the order of the graph's inputs. Throws UserError where trained parameters have several types.
FlatLayout backward_order_layout(const Graph& differentiated);

// Per value: the block of the model (how many marks come before) in which a graph input is first read, behind
// casts, which only say what it is stored in; -1 for what is none, or is not read.
std::vector<int64_t> first_blocks(const Graph& graph);

// The type that all trained parameters of a graph are stored in: f32, or bf16 (model/stored_params.h).
DType trained_dtype(const Graph& graph);

}  // namespace lockstep

// FlatLayout: where each parameter lies in one flat buffer. Gradients and optimizer state share the layout.
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
};

class FlatLayout {
 public:
  void add(std::string name, const Shape& shape);
  std::span<const FlatEntry> entries() const { return entries_; }
  const FlatEntry& find(std::string_view name) const;
  int64_t numel() const { return numel_; }  // padding included

 private:
  std::vector<FlatEntry> entries_;
  int64_t numel_ = 0;
};

// The parameters of a graph fresh from autodiff (no other pass may have moved nodes: the layout decides the
// order of sums in norms, so it must be a function of the model alone) in the order in which backward
// finishes their gradients: buckets of neighbours can then be reduced while backward goes on.
FlatLayout backward_order_layout(const Graph& differentiated);

}  // namespace lockstep

// Which pointwise nodes run together: regions grown greedily over a graph. The first half of the pass `fuse`.
//
// A region's nodes have one shape; at most one sum or mean of one of their values comes with them. A region
// can be run as one node: no path leaves it and comes back.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"
#include "passes/pipeline.h"

namespace lockstep {

struct FusionRegion {
  Shape shape;
  std::vector<int32_t> nodes;  // pointwise, in program order
  int32_t sum = -1;            // a reduction of one of their values
};

// The value a pointwise operand is read from: what it was broadcast from, as often as that happened.
Value before_broadcasts(const Graph& graph, Value value);
// The constant node behind a value, or null.
const Node* constant_behind(const Graph& graph, Value value);

struct RegionInterface {
  std::vector<Value> operands;  // read from outside, each once, in order of first use, before broadcasts
  std::vector<Value> results;   // the sum first, then the values that something outside reads
};

class FusionRegions {
 public:
  FusionRegions(const Graph& graph, const PassOptions& options);

  const std::vector<FusionRegion>& regions() const { return regions_; }
  // The region of a node, or -1.
  int region_of(int32_t node) const { return region_of_[static_cast<size_t>(node)]; }
  RegionInterface interface_of(const FusionRegion& region) const;

 private:
  const Node& node(int32_t index) const { return graph_.nodes()[static_cast<size_t>(index)]; }
  bool is_candidate(const Node& node) const;
  void add_pointwise(int32_t index);
  void add_sum(int32_t index);
  bool try_merge(int into, int from, int32_t window);
  // Empty when the union of both can be one region, otherwise the reason why not.
  std::string refuse(const FusionRegion& merged, int32_t window) const;
  std::string way_back(const FusionRegion& merged) const;
  void replace(int into, int from, FusionRegion merged);
  void explain(const std::string& line) const;

  const Graph& graph_;
  const PassOptions& options_;
  std::vector<std::vector<int32_t>> users_;
  std::vector<bool> is_output_;
  int32_t loss_;
  std::vector<FusionRegion> regions_;  // those merged into others are left empty
  std::vector<int> region_of_;
};

}  // namespace lockstep

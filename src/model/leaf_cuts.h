// LeafCuts: how the values of a model's forward graph are cut into leaves (model/tensor_leaves.h), found from
// the graph and from the ops' signatures alone.
//
// A product of a whole value and a parameter begins a region: its columns are dealt out to the leaves. What
// follows stays cut as long as its ops can work on parts (biases, activations, heads, attention); where it
// meets the rows of another parameter's product, the region ends with a sum over leaves. So qkv or gate and
// up are cut by columns, the projections back by rows, in any family that is built like that:
//
//   x -> qkv (columns) -> heads -> attention -> out (rows) -> sum     x -> up (columns) -> gelu -> down ->
//   sum
//
// The vocabulary is cut too: a table by rows, each leaf looking its own up, which ends with a sum; the head
// by columns, a region that ends with a cross-entropy of columns (ops/cross_entropy_leaves.cc). A table that
// is both is cut once. They are left whole where the leaves do not divide the rows, or where these are fewer
// than the columns: then a sum over leaves costs more than the table.
//
// Regions that meet something else (a norm over all columns, a draw at random) are left whole. All else is
// replicated: norms, the residual stream.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/op_def.h"

namespace lockstep {

// Along which axis a value is cut. Each segment of the axis is dealt out by itself: of q, k and v in one
// tensor a leaf has its heads of all three.
struct LeafCut {
  int axis = -1;  // not cut
  std::vector<int64_t> segments = {};
  bool is_cut() const { return axis >= 0; }
  bool operator==(const LeafCut&) const = default;
};

class LeafCuts {
 public:
  // Throws UserError where no region can be cut, or one cannot be dealt out evenly.
  LeafCuts(const Graph& graph, int64_t leaves);

  enum class Kind : uint8_t {
    kWhole,     // works on whole values
    kLeaves,    // once for each leaf
    kRows,      // the same, and the results are added up
    kLoss,      // a cross-entropy of logits that are cut
    kOnDemand,  // made of parameters alone, where it is read
  };
  Kind kind(int32_t node) const { return kinds_[static_cast<size_t>(node)]; }
  // Of a value; of a parameter, how it is stored. On demand: not cut.
  const LeafCut& cut(Value value) const { return cuts_[static_cast<size_t>(value.id)]; }
  // How a node that is made for each leaf reads its operands.
  const std::vector<LeafCut>& operands(int32_t node) const { return operands_[static_cast<size_t>(node)]; }
  // How the operands of a node on demand are read where its result is to be cut.
  std::vector<LeafCut> operands_on_demand(const Node& node, const LeafCut& result) const;
  bool on_demand(Value value) const { return on_demand_[static_cast<size_t>(value.id)]; }

 private:
  void find_on_demand();
  bool place_all();  // false: something was left whole or given segments; again
  void place(int32_t n);
  bool place_embedding(int32_t n);
  bool place_product(int32_t n);
  bool place_loss(int32_t n);
  bool place_packed_attention(int32_t n);
  bool place_slice(int32_t n);
  bool place_by_signature(int32_t n);
  bool accepts(int32_t n, const ShardingSignature& signature);
  bool has_cut_operand(const Node& node) const;
  // Takes a value made of parameters as cut, or whole.
  bool can_demand(Value value, const LeafCut& wanted) const;
  void demand(Value value, const LeafCut& wanted, int32_t by);
  void use_whole(Value value, int32_t by);
  void set_segments(int32_t n, const std::vector<int64_t>& segments);
  // Whether a table is worth it, or a head.
  bool can_cut_vocabulary(int64_t rows, int64_t columns) const;
  // The products that begin the regions which a node is in; of a table that is cut, its reader.
  std::set<int32_t> columns_before(int32_t n) const;
  std::string weight_of(int32_t product) const;
  void require_even() const;
  void require_even(int32_t n, int64_t extent, std::string_view what) const;

  const Graph& graph_;
  int64_t leaves_;
  std::vector<bool> on_demand_;
  std::set<int32_t> left_whole_;                      // products that begin no region, readers of tables
  std::map<int32_t, std::vector<int64_t>> segments_;  // of products that do
  std::vector<Kind> kinds_;
  std::vector<LeafCut> cuts_;
  std::vector<std::vector<LeafCut>> operands_;
  std::map<int32_t, std::vector<int32_t>> read_whole_, read_cut_;  // parameters, by these nodes
  bool again_ = false;
};

}  // namespace lockstep

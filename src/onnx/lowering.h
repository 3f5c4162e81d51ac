// OnnxLowering: from a graph to an ONNX model, node by node, by one function per op (onnx_ops.h).
//
// What the two do differently is settled here once:
//  - The graph has explicit broadcasts, ONNX's pointwise ops broadcast by themselves. A value may therefore
//    lie before its broadcast, and is only expanded for an op that needs every element.
//  - Images lie channels last here and channels first there. A convolution's result stays as ONNX made it
//    while pointwise ops, norms and pools follow, and is transposed for whoever needs the other order;
//    filters are written in ONNX's order.
//  - The graph has a fixed batch. Its extents come from two graphs of the same model, so that what grows with
//    the batch is left open.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op_def.h"
#include "onnx/onnx_model.h"

namespace lockstep {

// A value of the graph as it lies in the model.
struct OnnxValue {
  std::string name;
  OnnxDims dims;  // the value's own are those that these broadcast to
  // Lies as [N,C,H,W]; `dims` are [N,H,W,C] all the same, and complete.
  bool channels_first = false;
};

class OnnxLowering {
 public:
  // `dims` of every value of the graph, by its number.
  OnnxLowering(const Graph& graph, std::vector<OnnxDims> dims);

  // Inputs and outputs are the graph's, parameters and state are weights. Throws UserError that names the op
  // that has no form in ONNX.
  OnnxModel run() &&;

  const Graph& graph() const { return graph_; }
  const OnnxDims& dims(Value value) const { return dims_[static_cast<size_t>(value.id)]; }
  OnnxType type(Value value) const { return onnx_type(graph_.type(value).dtype); }
  bool is_read(Value value) const { return read_[static_cast<size_t>(value.id)]; }

  // A value as it lies; with every element and channels last; with every element and channels first.
  OnnxValue lying(Value value);
  std::string full(Value value);
  std::string channels_first(Value value);
  // A filter parameter, as ONNX has it.
  std::string filter(Value value);

  // Adds a node in the middle of an op's form; gives its result's name.
  std::string node(std::string_view type, std::vector<std::string> inputs,
                   std::vector<OnnxAttribute> attributes = {});
  // Adds the node that makes a graph node's first result, with every element and channels last.
  void result(const Node& of, std::string_view type, std::vector<std::string> inputs,
              std::vector<OnnxAttribute> attributes = {});
  // The same where it lies otherwise; `lies` has no name yet.
  void result(const Node& of, std::string_view type, std::vector<std::string> inputs,
              std::vector<OnnxAttribute> attributes, OnnxValue lies);
  // The result is what already lies somewhere.
  void is(Value value, OnnxValue lies);

  // Constants; equal ones are there once.
  std::string scalar(double value, OnnxType type);
  std::string integers(const std::vector<int64_t>& values);  // int64, one axis
  std::string constant(OnnxType type, std::vector<int64_t> dims, std::string bytes);
  // The operand of Reshape for these extents, of which one may be open.
  std::string target(const Node& of, const OnnxDims& dims);

  [[noreturn]] void refuse(const Node& node, std::string_view why) const;

 private:
  std::string add(std::string_view type, std::vector<std::string> inputs,
                  std::vector<OnnxAttribute> attributes, std::string output);
  void add_input(const GraphInput& input);
  std::string expanded(const OnnxValue& value, const OnnxDims& to);
  std::string batch_size();

  const Graph& graph_;
  std::vector<OnnxDims> dims_;
  std::vector<bool> read_;
  OnnxModel model_;
  std::vector<OnnxValue> values_;    // by number; nameless where nothing has asked yet
  std::map<int32_t, bool> weights_;  // whether a parameter was taken as a filter
  std::map<std::string, std::string>
      known_;                 // constants, and transposed or expanded values, by what they are
  const Node* at_ = nullptr;  // the node that is being lowered
  int64_t next_ = 0;
};

// The permutation of a transpose node.
OnnxAttribute permutation(std::vector<int64_t> axes);
// What two lie as after they are broadcast together.
OnnxDims broadcast_dims(const OnnxDims& a, const OnnxDims& b);

}  // namespace lockstep

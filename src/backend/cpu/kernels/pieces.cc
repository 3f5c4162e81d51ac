// slice, split and concat of any element type: blocks of bytes between a whole tensor and pieces of it along
// one axis.
#include "backend/cpu/block_copy.h"
#include "ops/axis_pieces.h"

namespace lockstep::cpu {
namespace {

struct Piece {
  BlockCopy copy;
  int64_t offset = 0;  // bytes from the start of the whole to the piece
};

// The copies between `whole` and a piece of it at index `begin` along axis; strides as for taking the piece
// out.
Piece piece_of(const Type& whole, const Type& piece, int axis, int64_t begin) {
  const int64_t inner = whole.shape.product(axis + 1, whole.shape.rank()) * size_of(whole.dtype);
  const int64_t bytes = piece.shape[axis] * inner;
  return {{whole.shape.product(0, axis), bytes, bytes, whole.shape[axis] * inner}, begin * inner};
}

class TakePieces : public Kernel {
 public:
  TakePieces(const Graph& graph, const Node& node, const CpuContext& context) : context_(context) {
    const Type& whole = graph.type(node.inputs[0]);
    const int axis = piece_axis(whole.shape, node.attributes);
    int64_t begin = node.op->name == "slice" ? node.attributes.integer("begin") : 0;
    for (const Value output : node.outputs) {
      pieces_.push_back(piece_of(whole, graph.type(output), axis, begin));
      begin += graph.type(output).shape[axis];
    }
  }

  void run(const KernelArgs& args) override {
    const auto* whole = static_cast<const char*>(args.inputs[0]);
    for (size_t i = 0; i < pieces_.size(); ++i)
      copy_blocks(context_, pieces_[i].copy, args.outputs[i], whole + pieces_[i].offset);
  }

 private:
  CpuContext context_;
  std::vector<Piece> pieces_;
};

class PutPieces : public Kernel {
 public:
  PutPieces(const Graph& graph, const Node& node, const CpuContext& context) : context_(context) {
    const Type& whole = graph.type(node.outputs[0]);
    const int axis = piece_axis(whole.shape, node.attributes);
    int64_t begin = 0;
    for (const Value input : node.inputs) {
      Piece piece = piece_of(whole, graph.type(input), axis, begin);
      std::swap(piece.copy.to_stride, piece.copy.from_stride);
      pieces_.push_back(piece);
      begin += graph.type(input).shape[axis];
    }
  }

  void run(const KernelArgs& args) override {
    auto* whole = static_cast<char*>(args.outputs[0]);
    for (size_t i = 0; i < pieces_.size(); ++i)
      copy_blocks(context_, pieces_[i].copy, whole + pieces_[i].offset, args.inputs[i]);
  }

 private:
  CpuContext context_;
  std::vector<Piece> pieces_;
};

}  // namespace

KernelDef slice_kernel() { return {"slice", "cpu.slice", refuse_nothing, make_kernel<TakePieces>}; }
KernelDef split_kernel() { return {"split", "cpu.split", refuse_nothing, make_kernel<TakePieces>}; }
KernelDef concat_kernel() { return {"concat", "cpu.concat", refuse_nothing, make_kernel<PutPieces>}; }

}  // namespace lockstep::cpu

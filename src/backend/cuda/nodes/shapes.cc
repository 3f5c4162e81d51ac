// What moves or makes elements: broadcast, transpose, pieces, pad, constants, triangles.
#include <cstring>

#include "backend/cuda/kernel_def.h"
#include "backend/cuda/kernels/launch.h"
#include "backend/cuda/kernels/strided_copy.h"
#include "ops/axis_pieces.h"

namespace lockstep::cuda {
namespace {

using Steps = std::vector<int64_t>;

Steps strides_of(const Shape& shape) {
  const auto all = shape.strides();
  return {all.begin(), all.begin() + shape.rank()};
}

// One strided copy: from a place in the operand to a place in the result.
struct Move {
  Steps extents, from, to;
  int64_t from_offset = 0, to_offset = 0;  // elements

  void run(cudaStream_t stream, int64_t bytes, const void* source, void* target) const {
    for (const int64_t extent : extents)
      if (extent == 0) return;
    strided_copy(stream, bytes, extents, static_cast<const char*>(source) + from_offset * bytes, from,
                 static_cast<char*>(target) + to_offset * bytes, to);
  }
};

class Rearrange : public NodeKernel {
 public:
  Rearrange(const Graph& graph, const Node& node, Device&) : bytes_(size_of(out_type(graph, node, 0).dtype)) {
    const Shape& from = in_type(graph, node, 0).shape;
    const Shape& to = out_type(graph, node, 0).shape;
    move_.extents.assign(to.begin(), to.end());
    move_.to = strides_of(to);
    const Steps own = strides_of(from);
    if (node.op->name == "transpose") {
      for (const int64_t axis : node.attributes.integers("permutation"))
        move_.from.push_back(own[static_cast<size_t>(axis < 0 ? axis + from.rank() : axis)]);
      return;
    }
    move_.from.assign(static_cast<size_t>(to.rank()), 0);
    for (int axis = 0; axis < from.rank(); ++axis)
      if (from[axis] != 1)
        move_.from[static_cast<size_t>(axis + to.rank() - from.rank())] = own[static_cast<size_t>(axis)];
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    move_.run(stream, bytes_, args.inputs[0], args.outputs[0]);
  }

 private:
  int64_t bytes_;
  Move move_;
};

// The move that takes a piece out of a whole.
Move piece(const Shape& whole, const Shape& part, int axis, int64_t begin) {
  const Steps own = strides_of(whole);
  return {Steps(part.begin(), part.end()), own, strides_of(part), begin * own[static_cast<size_t>(axis)], 0};
}

class TakePieces : public NodeKernel {
 public:
  TakePieces(const Graph& graph, const Node& node, Device&) : bytes_(size_of(in_type(graph, node, 0).dtype)) {
    const Shape& whole = in_type(graph, node, 0).shape;
    const int axis = piece_axis(whole, node.attributes);
    int64_t begin = node.op->name == "slice" ? node.attributes.integer("begin") : 0;
    for (const Value output : node.outputs) {
      const Shape& part = graph.type(output).shape;
      moves_.push_back(piece(whole, part, axis, begin));
      begin += part[axis];
    }
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    for (size_t i = 0; i < moves_.size(); ++i) moves_[i].run(stream, bytes_, args.inputs[0], args.outputs[i]);
  }

 private:
  int64_t bytes_;
  std::vector<Move> moves_;
};

class PutPieces : public NodeKernel {
 public:
  PutPieces(const Graph& graph, const Node& node, Device&) : bytes_(size_of(out_type(graph, node, 0).dtype)) {
    const Shape& whole = out_type(graph, node, 0).shape;
    const int axis = piece_axis(whole, node.attributes);
    int64_t begin = 0;
    for (const Value input : node.inputs) {
      const Shape& part = graph.type(input).shape;
      Move move = piece(whole, part, axis, begin);
      std::swap(move.from, move.to);
      std::swap(move.from_offset, move.to_offset);
      moves_.push_back(std::move(move));
      begin += part[axis];
    }
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    for (size_t i = 0; i < moves_.size(); ++i) moves_[i].run(stream, bytes_, args.inputs[i], args.outputs[0]);
  }

 private:
  int64_t bytes_;
  std::vector<Move> moves_;
};

uint64_t bits_of(DType dtype, double value) {
  uint64_t bits = 0;
  write_element(dtype, &bits, 0, value);
  return bits;
}

class Pad : public NodeKernel {
 public:
  Pad(const Graph& graph, const Node& node, Device&)
      : bytes_(size_of(out_type(graph, node, 0).dtype)),
        count_(out_type(graph, node, 0).shape.numel()),
        bits_(bits_of(out_type(graph, node, 0).dtype, node.attributes.number("value"))) {
    const Shape& from = in_type(graph, node, 0).shape;
    const std::vector<int64_t>& low = node.attributes.integers("low");
    move_ = {Steps(from.begin(), from.end()), strides_of(from), strides_of(out_type(graph, node, 0).shape), 0,
             0};
    for (size_t axis = 0; axis < low.size(); ++axis) move_.to_offset += low[axis] * move_.to[axis];
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (count_ == 0) return;
    fill(stream, bytes_, bits_, args.outputs[0], count_);
    move_.run(stream, bytes_, args.inputs[0], args.outputs[0]);
  }

 private:
  int64_t bytes_, count_;
  uint64_t bits_;
  Move move_;
};

class Constant : public NodeKernel {
 public:
  Constant(const Graph& graph, const Node& node, Device&)
      : type_(out_type(graph, node, 0)), bits_(bits_of(type_.dtype, node.attributes.number("value"))) {}

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (type_.shape.numel() > 0)
      fill(stream, size_of(type_.dtype), bits_, args.outputs[0], type_.shape.numel());
  }

 private:
  Type type_;
  uint64_t bits_;
};

class Iota : public NodeKernel {
 public:
  Iota(const Graph& graph, const Node& node, Device&) : type_(out_type(graph, node, 0)) {
    const int rank = type_.shape.rank();
    const auto axis = static_cast<int>((node.attributes.integer("axis") + rank) % rank);
    inner_ = type_.shape.product(axis + 1, rank);
    extent_ = type_.shape[axis];
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (type_.shape.numel() > 0)
      iota(stream, type_.dtype, inner_, extent_, args.outputs[0], type_.shape.numel());
  }

 private:
  Type type_;
  int64_t inner_ = 1, extent_ = 1;
};

std::string refuse_iota(const Graph& graph, const Node& node, Device&) {
  const DType dtype = out_type(graph, node, 0).dtype;
  if (dtype == DType::kF32 || dtype == DType::kI32 || dtype == DType::kI64) return "";
  return fmt::format("the result is {}; f32, i32 and i64 are implemented", name_of(dtype));
}

class LowerTriangle : public NodeKernel {
 public:
  LowerTriangle(const Graph& graph, const Node& node, Device&) : gather_(node.op->name == "lower_triangle") {
    const Type& square = gather_ ? in_type(graph, node, 0) : out_type(graph, node, 0);
    bytes_ = size_of(square.dtype);
    size_ = square.shape[-1];
    matrices_ = size_ == 0 ? 0 : square.shape.numel() / (size_ * size_);
  }

 protected:
  void launch(const KernelArgs& args, cudaStream_t stream) override {
    if (matrices_ == 0) return;
    if (gather_)
      lower_triangle(stream, bytes_, matrices_, size_, args.inputs[0], args.outputs[0]);
    else
      lower_triangle_grad(stream, bytes_, matrices_, size_, args.inputs[0], args.outputs[0]);
  }

 private:
  bool gather_;
  int64_t bytes_, size_, matrices_;
};

}  // namespace

void add_shapes(KernelDefs& defs) {
  defs.push_back({"broadcast", "cuda.broadcast", refuse_nothing, make_kernel<Rearrange>});
  defs.push_back({"transpose", "cuda.transpose", refuse_nothing, make_kernel<Rearrange>});
  defs.push_back({"slice", "cuda.slice", refuse_nothing, make_kernel<TakePieces>});
  defs.push_back({"split", "cuda.split", refuse_nothing, make_kernel<TakePieces>});
  defs.push_back({"concat", "cuda.concat", refuse_nothing, make_kernel<PutPieces>});
  defs.push_back({"pad", "cuda.pad", refuse_nothing, make_kernel<Pad>});
  defs.push_back({"constant", "cuda.constant", refuse_nothing, make_kernel<Constant>});
  defs.push_back({"iota", "cuda.iota", refuse_iota, make_kernel<Iota>});
  defs.push_back({"lower_triangle", "cuda.lower_triangle", refuse_nothing, make_kernel<LowerTriangle>});
  defs.push_back(
      {"lower_triangle_grad", "cuda.lower_triangle_grad", refuse_nothing, make_kernel<LowerTriangle>});
}

}  // namespace lockstep::cuda

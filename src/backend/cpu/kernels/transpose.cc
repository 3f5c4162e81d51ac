// transpose of any element type. Axes that travel together are merged first; what remains is one of
//   a plain copy, where only axes of extent 1 moved;
//   rows that stay whole and change places ([B,T,H,D] <-> [B,H,T,D]);
//   planes of two axes, the operand's last and the result's last, transposed block by block.
#include <algorithm>
#include <cstring>

#include "backend/cpu/block_copy.h"
#include "backend/cpu/transpose_block.h"

namespace lockstep::cpu {
namespace {

struct Axis {
  int64_t extent;
  int64_t from_stride;  // in elements of the operand
  int64_t to_stride;    // in elements of the result
};

// The axes in the order of the result.
std::vector<Axis> merged_axes(const Shape& from, const Shape& to, const std::vector<int64_t>& permutation) {
  std::vector<Axis> axes;
  for (int axis = 0; axis < to.rank(); ++axis) {
    const auto source = static_cast<size_t>(permutation[static_cast<size_t>(axis)]);
    const Axis next{to[axis], from.strides()[source], to.strides()[static_cast<size_t>(axis)]};
    if (next.extent == 1) continue;
    if (!axes.empty() && axes.back().from_stride == next.from_stride * next.extent)
      axes.back() = {axes.back().extent * next.extent, next.from_stride, next.to_stride};
    else
      axes.push_back(next);
  }
  return axes;
}

// Walks over indices of some axes in row-major order, keeping the offsets of both sides.
class Walk {
 public:
  Walk(const std::vector<Axis>& axes, int64_t start) : axes_(axes) {
    for (size_t axis = axes.size(); axis-- > 0; start /= axes[axis].extent) {
      index_[axis] = start % axes[axis].extent;
      from += index_[axis] * axes[axis].from_stride;
      to += index_[axis] * axes[axis].to_stride;
    }
  }
  void next() {
    for (size_t axis = axes_.size(); axis-- > 0;) {
      from += axes_[axis].from_stride;
      to += axes_[axis].to_stride;
      if (++index_[axis] < axes_[axis].extent) return;
      from -= axes_[axis].extent * axes_[axis].from_stride;
      to -= axes_[axis].extent * axes_[axis].to_stride;
      index_[axis] = 0;
    }
  }
  int64_t from = 0;
  int64_t to = 0;

 private:
  const std::vector<Axis>& axes_;
  int64_t index_[Shape::kMaxRank] = {};
};

int64_t indices_of(const std::vector<Axis>& axes) {
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.extent;
  return count;
}

class Transpose : public Kernel {
 public:
  Transpose(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context), type_(graph.type(node.outputs[0])), width_(size_of(type_.dtype)) {
    outer_ =
        merged_axes(graph.type(node.inputs[0]).shape, type_.shape, node.attributes.integers("permutation"));
    if (type_.shape.numel() == 0 || outer_.size() <= 1) return;
    columns_ = outer_.back();
    outer_.pop_back();
    if (columns_.from_stride == 1) return;
    const auto unit =
        std::find_if(outer_.begin(), outer_.end(), [](const Axis& a) { return a.from_stride == 1; });
    rows_ = *unit;
    outer_.erase(unit);
  }

  void run(const KernelArgs& args) override {
    auto* to = static_cast<char*>(args.outputs[0]);
    const auto* from = static_cast<const char*>(args.inputs[0]);
    if (rows_.extent > 0)
      move_planes(to, from);
    else if (columns_.extent > 0)
      move_rows(to, from);
    else
      copy_blocks(context_, {1, type_.bytes(), 0, 0}, to, from);
  }

 private:
  static constexpr int64_t kBlockRows = 64;
  static constexpr int64_t kBlockColumns = 64;

  void move_rows(char* to, const char* from) const {
    const int64_t bytes = columns_.extent * width_;
    for_rows(context_, indices_of(outer_), rows_per_task(columns_.extent), [&](int64_t begin, int64_t end) {
      Walk at(outer_, begin);
      for (int64_t row = begin; row < end; ++row, at.next())
        std::memcpy(to + row * bytes, from + at.from * width_, static_cast<size_t>(bytes));
    });
  }

  // Small planes share a task; large ones are cut in blocks.
  void move_planes(char* to, const char* from) const {
    const int64_t planes = indices_of(outer_);
    const int64_t row_blocks = ceil_div(rows_.extent, kBlockRows);
    const int64_t column_blocks = ceil_div(columns_.extent, kBlockColumns);
    const int64_t elements = std::min(rows_.extent, kBlockRows) * std::min(columns_.extent, kBlockColumns);
    const int64_t blocks = row_blocks * column_blocks;
    for_rows(context_, planes * blocks, rows_per_task(elements), [&](int64_t begin, int64_t end) {
      Walk at(outer_, begin / blocks);
      for (int64_t unit = begin; unit < end; ++unit) {
        move_block(to + at.to * width_, from + at.from * width_, unit % blocks / column_blocks * kBlockRows,
                   unit % column_blocks * kBlockColumns);
        if ((unit + 1) % blocks == 0) at.next();
      }
    });
  }

  void move_block(char* to, const char* from, int64_t row, int64_t column) const {
    transpose_block(width_, to + (row * rows_.to_stride + column) * width_, rows_.to_stride,
                    from + (row + column * columns_.from_stride) * width_, columns_.from_stride,
                    std::min(kBlockColumns, columns_.extent - column),
                    std::min(kBlockRows, rows_.extent - row));
  }

  CpuContext context_;
  Type type_;
  int64_t width_;
  std::vector<Axis> outer_;
  Axis columns_{};  // the result's last axis; extent 0 when the whole is one row
  Axis rows_{};     // the operand's last axis; extent 0 when that is `columns_`
};

}  // namespace

KernelDef transpose_kernel() {
  return {"transpose", "cpu.transpose", refuse_nothing, make_kernel<Transpose>};
}

}  // namespace lockstep::cpu

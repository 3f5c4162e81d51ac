// pad of any element type, one row of the result after another. Axes inside the last padded one belong to its
// rows.
#include <cstring>

#include "backend/cpu/block_copy.h"

namespace lockstep::cpu {
namespace {

class Pad : public Kernel {
 public:
  Pad(const Graph& graph, const Node& node, const CpuContext& context) : context_(context) {
    const Type& from = graph.type(node.inputs[0]);
    const Shape& to = graph.type(node.outputs[0]).shape;
    const std::vector<int64_t>& low = node.attributes.integers("low");
    width_ = size_of(from.dtype);
    write_element(from.dtype, element_, 0, node.attributes.number("value"));
    int last = from.shape.rank() - 1;
    while (last > 0 && from.shape[last] == to[last]) --last;
    for (int axis = 0; axis < last; ++axis)
      axes_.push_back({from.shape[axis], to[axis], low[static_cast<size_t>(axis)]});
    const int64_t inner = last < 0 ? 1 : from.shape.product(last + 1, from.shape.rank());
    row_ = last < 0
               ? Axis{1, 1, 0}
               : Axis{from.shape[last] * inner, to[last] * inner, low[static_cast<size_t>(last)] * inner};
    rows_ = row_.to == 0 ? 0 : to.numel() / row_.to;
  }

  void run(const KernelArgs& args) override {
    for_rows(context_, rows_, rows_per_task(row_.to), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        write_row(static_cast<char*>(args.outputs[0]) + row * row_.to * width_,
                  static_cast<const char*>(args.inputs[0]), source_row(row));
    });
  }

 private:
  struct Axis {
    int64_t from, to, low;
  };

  // The operand's row at a row of the result, or -1 outside it.
  int64_t source_row(int64_t row) const {
    int64_t source = 0;
    int64_t stride = 1;
    for (size_t axis = axes_.size(); axis-- > 0;) {
      const int64_t index = row % axes_[axis].to - axes_[axis].low;
      if (index < 0 || index >= axes_[axis].from) return -1;
      source += index * stride;
      stride *= axes_[axis].from;
      row /= axes_[axis].to;
    }
    return source;
  }

  void write_row(char* to, const char* from, int64_t source) const {
    if (source < 0 || row_.from == 0) return fill_elements(to, element_, width_, row_.to);
    fill_elements(to, element_, width_, row_.low);
    to += row_.low * width_;
    std::memcpy(to, from + source * row_.from * width_, static_cast<size_t>(row_.from * width_));
    fill_elements(to + row_.from * width_, element_, width_, row_.to - row_.low - row_.from);
  }

  CpuContext context_;
  int64_t width_ = 0;
  alignas(8) char element_[8] = {};
  std::vector<Axis> axes_;
  Axis row_{};
  int64_t rows_ = 0;
};

}  // namespace

KernelDef pad_kernel() { return {"pad", "cpu.pad", refuse_nothing, make_kernel<Pad>}; }

}  // namespace lockstep::cpu

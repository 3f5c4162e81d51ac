// broadcast: copies elements of any type, whole rows at a time.
#include <algorithm>
#include <cstring>

#include "backend/cpu/kernel_def.h"
#include "backend/cpu/tile_layout.h"

namespace lockstep::cpu {
namespace {

template <typename T>
void fill(void* out, const void* value, int64_t n) {
  T element;
  std::memcpy(&element, value, sizeof(T));
  std::fill_n(static_cast<T*>(out), n, element);
}

void fill(void* out, const void* value, int64_t n, int64_t element_bytes) {
  switch (element_bytes) {
    case 1: return fill<uint8_t>(out, value, n);
    case 2: return fill<uint16_t>(out, value, n);
    case 4: return fill<uint32_t>(out, value, n);
    default: return fill<uint64_t>(out, value, n);
  }
}

class Broadcast : public Kernel {
 public:
  Broadcast(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        bytes_(size_of(graph.type(node.outputs[0]).dtype)),
        layout_(graph.type(node.outputs[0]).shape, std::span(&graph.type(node.inputs[0]).shape, 1),
                kTaskElements) {}

  void run(const KernelArgs& args) override {
    context_.pool.run(layout_.tiles(), [&](int64_t index) {
      const Tile tile = layout_.tile(index);
      const auto* in = static_cast<const char*>(args.inputs[0]);
      char* out = static_cast<char*>(args.outputs[0]) + layout_.offset(tile) * bytes_;
      const int64_t stride = layout_.column_stride(0);
      for (int64_t r = 0; r < tile.rows; ++r, out += tile.columns * bytes_) {
        const char* from = in + (layout_.row_offset(0, tile.row + r) + tile.column * stride) * bytes_;
        if (stride == 0)
          fill(out, from, tile.columns, bytes_);
        else
          std::memcpy(out, from, static_cast<size_t>(tile.columns * bytes_));
      }
    });
  }

 private:
  CpuContext context_;
  int64_t bytes_;
  TileLayout layout_;
};

}  // namespace

KernelDef broadcast_kernel() {
  return {"broadcast", "cpu.broadcast", refuse_nothing, make_kernel<Broadcast>};
}

}  // namespace lockstep::cpu

// dropout: the mask is drawn in the loop that applies it.
#include <algorithm>
#include <array>

#include "backend/cpu/float_staging.h"
#include "backend/cpu/simd/simd.h"
#include "ops/dropout_stream.h"

namespace lockstep::cpu {
namespace {

class Dropout : public Kernel {
 public:
  Dropout(const Graph& graph, const Node& node, const CpuContext& context)
      : context_(context),
        type_(graph.type(node.inputs[0])),
        key_(node.attributes.integer("key")),
        threshold_(Philox::bernoulli_threshold(node.attributes.number("p"))),
        scale_(dropout_scale(node.attributes.number("p"))) {}

  void run(const KernelArgs& args) override {
    const auto* rng = static_cast<const int64_t*>(args.inputs[1]);
    DropoutMask mask{static_cast<uint64_t>(rng[0]), dropout_stream(key_, rng[1]), 0, threshold_, scale_};
    for_rows(context_, type_.shape.numel(), kTaskElements, [&](int64_t begin, int64_t end) {
      if (type_.dtype == DType::kF32)
        context_.simd.dropout.dropout(static_cast<const float*>(args.inputs[0]),
                                      static_cast<float*>(args.outputs[0]), begin, end, mask);
      else
        run_converted(args, begin, end, mask);
    });
  }

 private:
  void run_converted(const KernelArgs& args, int64_t begin, int64_t end, DropoutMask mask) const {
    std::array<float, 1024> tile;
    for (int64_t first = begin; first < end; first += static_cast<int64_t>(tile.size())) {
      const int64_t count = std::min<int64_t>(end - first, tile.size());
      load_floats(context_, type_.dtype, args.inputs[0], first, count, tile.data());
      mask.first_index = static_cast<uint64_t>(first);
      context_.simd.dropout.dropout(tile.data(), tile.data(), 0, count, mask);
      store_floats(context_, type_.dtype, tile.data(), args.outputs[0], first, count);
    }
  }

  CpuContext context_;
  Type type_;
  int64_t key_;
  uint64_t threshold_;
  float scale_;
};

}  // namespace

KernelDef dropout_kernel() { return {"dropout", "cpu.dropout", refuse_nothing, make_kernel<Dropout>}; }

}  // namespace lockstep::cpu

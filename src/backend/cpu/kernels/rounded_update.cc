// sgd, adam, adamw and lion over parameters in bf16 (ops/rounded_update.h): tiles that stay in the nearest
// cache are widened to f32, go through the loops of the f32 kernels, and are rounded on their way back.
#include "ops/rounded_update.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/optimizer_kernel.h"
#include "ops/stochastic_rounding.h"

namespace lockstep::cpu {
namespace {

constexpr int64_t kTile = 1024;
static_assert(kFlatTask % kTile == 0 && kTile % kDrawBlock == 0, "tiles begin with a whole block of draws");

struct Tile {
  alignas(64) float p[kTile];
  alignas(64) float g[kTile];
  alignas(64) float state[2][kTile];
};

std::string refuse(const Graph& graph, const Node& node) {
  return rounding_operand(graph, node.inputs) >= 0 ? "" : "parameters are not bf16";
}

class RoundedUpdate : public OptimizerKernel {
 protected:
  RoundedUpdate(const Graph& graph, const Node& node, const CpuContext& context)
      : OptimizerKernel(graph, node, context),
        rounding_(static_cast<size_t>(rounding_operand(graph, node.inputs))),
        draws_(draw_segments(node.attributes)) {
    for (const Value output : node.outputs) bf16_.push_back(graph.type(output).dtype == DType::kBF16);
  }

  // Calls update(tile, begin, end, decays) for elements [begin, end) of tiles whose buffers are filled in.
  template <typename Update>
  void run_tiles(const KernelArgs& args, const Update& update) const {
    for_rows(context_, count(), kFlatTask, [&](int64_t begin, int64_t end) {
      Tile tile;
      while (begin < end) {
        const auto next = std::upper_bound(draws_.begin(), draws_.end(), begin,
                                           [](int64_t at, const DrawSegment& s) { return at < s.begin; });
        const int64_t stop = std::min({end, begin + kTile, next == draws_.end() ? end : next->begin});
        fill(tile, args, begin, stop);
        for_decay(begin, stop, [&](int64_t from, int64_t to, bool decays) {
          update(tile, from - begin, to - begin, decays);
        });
        store(tile, args, begin, stop, *(next - 1));
        begin = stop;
      }
    });
  }

 private:
  static float* buffer(Tile& tile, size_t result) { return result == 0 ? tile.p : tile.state[result - 1]; }

  void fill(Tile& tile, const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto widen = [&](float* to, const void* from, bool bf16) {
      if (bf16)
        context_.simd.pointwise.from_bf16(to, static_cast<const uint16_t*>(from) + begin, end - begin);
      else
        std::memcpy(to, static_cast<const float*>(from) + begin, bytes_of(end - begin));
    };
    widen(tile.g, args.inputs[1], true);
    for (size_t i = 0; i < bf16_.size(); ++i)
      widen(buffer(tile, i), args.inputs[i == 0 ? 0 : i + 1], bf16_[i]);
  }

  void store(Tile& tile, const KernelArgs& args, int64_t begin, int64_t end, const DrawSegment& draw) const {
    const auto* rounding = static_cast<const int64_t*>(args.inputs[rounding_]);
    for (size_t i = 0; i < bf16_.size(); ++i) {
      if (!bf16_[i]) {
        std::memcpy(static_cast<float*>(args.outputs[i]) + begin, buffer(tile, i), bytes_of(end - begin));
        continue;
      }
      context_.simd.rounding.round_stochastic(
          buffer(tile, i), static_cast<uint16_t*>(args.outputs[i]) + begin, 0, end - begin,
          draw.first + begin - draw.begin, static_cast<uint64_t>(rounding[0]),
          rounding_stream(result_key(draw.key, i), rounding[1]));
    }
  }

  static size_t bytes_of(int64_t elements) { return static_cast<size_t>(elements) * sizeof(float); }

  size_t rounding_;
  std::vector<DrawSegment> draws_;
  std::vector<bool> bf16_;  // per result
};

class RoundedSgd : public RoundedUpdate {
 public:
  RoundedSgd(const Graph& graph, const Node& node, const CpuContext& context)
      : RoundedUpdate(graph, node, context),
        has_momentum_(node.outputs.size() == 2),
        step_{.grad_scale = 0.0f,
              .lr = 0.0f,
              .momentum = static_cast<float>(node.attributes.number("momentum")),
              .weight_decay = static_cast<float>(node.attributes.number("weight_decay")),
              .nesterov = node.attributes.flag("nesterov")} {}

  void run(const KernelArgs& args) override {
    const Scalars now = scalars(args);
    SgdStep decayed = step_;
    decayed.grad_scale = now.scale;
    decayed.lr = now.lr;
    SgdStep plain = decayed;
    plain.weight_decay = 0.0f;
    run_tiles(args, [&](Tile& tile, int64_t begin, int64_t end, bool decays) {
      context_.simd.optimizer.sgd(tile.p, has_momentum_ ? tile.state[0] : nullptr, tile.g, nullptr, begin,
                                  end, decays ? decayed : plain);
    });
  }

 private:
  bool has_momentum_;
  SgdStep step_;
};

class RoundedAdam : public RoundedUpdate {
 public:
  RoundedAdam(const Graph& graph, const Node& node, const CpuContext& context)
      : RoundedUpdate(graph, node, context),
        update_(node.op->name == "adamw" ? context.simd.optimizer.adamw : context.simd.optimizer.adam),
        options_(adam_options(node.attributes)) {}

  void run(const KernelArgs& args) override {
    const auto [scale, lr, t] = scalars(args);
    const AdamOptions options = with_lr(options_, lr);
    const AdamStep decayed = adam_step(options, t, scale);
    const AdamStep plain = adam_step(without_decay(options), t, scale);
    run_tiles(args, [&](Tile& tile, int64_t begin, int64_t end, bool decays) {
      update_(tile.p, tile.state[0], tile.state[1], tile.g, nullptr, begin, end, decays ? decayed : plain);
    });
  }

 private:
  decltype(OptimizerLoops::adamw) update_;
  AdamOptions options_;
};

class RoundedLion : public RoundedUpdate {
 public:
  RoundedLion(const Graph& graph, const Node& node, const CpuContext& context)
      : RoundedUpdate(graph, node, context), options_(adam_options(node.attributes)) {}

  void run(const KernelArgs& args) override {
    const Scalars now = scalars(args);
    const AdamOptions options = with_lr(options_, now.lr);
    const LionStep decayed = lion_step(options, now.scale);
    const LionStep plain = lion_step(without_decay(options), now.scale);
    run_tiles(args, [&](Tile& tile, int64_t begin, int64_t end, bool decays) {
      context_.simd.optimizer.lion(tile.p, tile.state[0], tile.g, nullptr, begin, end,
                                   decays ? decayed : plain);
    });
  }

 private:
  AdamOptions options_;
};

}  // namespace

KernelDef sgd_rounded_kernel() { return {"sgd", "cpu.sgd_rounded", refuse, make_kernel<RoundedSgd>}; }
KernelDef adam_rounded_kernel() { return {"adam", "cpu.adam_rounded", refuse, make_kernel<RoundedAdam>}; }
KernelDef adamw_rounded_kernel() { return {"adamw", "cpu.adamw_rounded", refuse, make_kernel<RoundedAdam>}; }
KernelDef lion_rounded_kernel() { return {"lion", "cpu.lion_rounded", refuse, make_kernel<RoundedLion>}; }

}  // namespace lockstep::cpu

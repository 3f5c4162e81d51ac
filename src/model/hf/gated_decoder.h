// Decoders of the LLaMA kind: projections of queries, keys, values and output, rotary positions, rms norms
// and a gated MLP, under the names model.layers.N.{self_attn.*_proj, mlp.*_proj, *_layernorm}, model.norm.
//
// The base reads the keys that all of them have and offers attention and MLP; a family's block says how these
// stand together.
#pragma once
#include "model/hf/decoder.h"

namespace lockstep {

class GatedDecoder : public HfDecoder {
 protected:
  // What a family takes where config.json says nothing.
  struct Defaults {
    std::optional<int64_t> kv_heads = {};  // none: as many as heads
    std::optional<int64_t> head_dim = {};  // none: hidden_size / heads
    int64_t max_positions = 2048;
    double epsilon = 1e-6;
    bool tied = false;
    std::string_view activation_key = "hidden_act";
    std::string_view activation = "silu";
    HfRope::Defaults rope = {};
    std::string_view rope_kind = {};
  };
  void read_sizes(const HfConfig& config, HfHead head, const Defaults& defaults);

  Value body(DecoderGraph& b) const override;
  // The layer `n`, whose parameters' names begin with `name`. As written here it is LLaMA's:
  //   x += attention(norm(x)); x += mlp(norm(x)).
  virtual Value block(DecoderGraph& b, const std::string& name, int64_t n, Value x) const;

  Value norm(DecoderGraph& b, const std::string& name, Value x) const;
  Value attention(DecoderGraph& b, const std::string& name, int64_t n, Value x) const;
  Value mlp(DecoderGraph& b, const std::string& name, Value x) const;
  // The window of layer n, 0 where it has none.
  int64_t window_of(int64_t n) const { return windows.empty() ? 0 : windows[static_cast<size_t>(n)]; }

  int64_t layers = 0, dim = 0, heads = 0, kv_heads = 0, head_dim = 0, hidden = 0;
  double epsilon = 1e-6;
  HfActivation activation = HfActivation::kSilu;
  HfRope rope;
  std::vector<int64_t> windows;  // one per layer; empty: none
  double scale = 0;              // of scores; 0: 1 / sqrt(head_dim)
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
};

}  // namespace lockstep

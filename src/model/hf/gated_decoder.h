// Decoders of the LLaMA kind: projections of queries, keys, values and output, rotary positions, rms norms
// and a gated MLP, under the names model.layers.N.{self_attn.*_proj, mlp.*_proj, *_layernorm} and model.norm.
//
// The base reads the keys that all of them have and offers attention and MLP; a family says what it adds and,
// where its blocks stand together differently, how.
#pragma once
#include <functional>

#include "model/hf/decoder.h"

namespace lockstep {

class GatedDecoder : public HfDecoder {
 protected:
  // What a family takes where config.json says nothing.
  struct Defaults {
    std::optional<int64_t> heads = {};  // none: config.json must say it, as all that stand here without
    std::optional<int64_t> vocab = {};
    std::optional<int64_t> kv_heads = {};  // none: as many as heads
    std::optional<int64_t> head_dim = {};  // none: hidden_size / heads
    int64_t max_positions = 2048;
    double epsilon = 1e-6;
    bool tied = false;
    std::optional<int64_t> padding_token = {};
    std::string_view activation_key = "hidden_act";
    std::string_view activation = "silu";
    HfRope::Defaults rope = {};
    std::string_view rope_kind = {};
  };
  void read_sizes(const HfConfig& config, HfHead head, const Defaults& defaults);
  // Which layers have a window of so many keys: those that layer_types calls sliding_attention; where that
  // key is absent, those that `otherwise` says.
  void read_windows(const HfConfig& config, int64_t window, const std::function<bool(int64_t n)>& otherwise);
  // qwen2, qwen3: the last layers from max_window_layers on, if use_sliding_window is set.
  void read_late_windows(const HfConfig& config);

  int64_t same_angles_up_to(int64_t length) const override;
  Value body(DecoderGraph& b) const override;
  // Layer n, whose parameters' names begin with `name`. As written here it is LLaMA's:
  //   x += attention(norm(x)); x += mlp(norm(x)).
  virtual Value block(DecoderGraph& b, const std::string& name, int64_t n, Value x) const;
  virtual const HfRope& rope_of(int64_t /*n*/) const { return rope; }

  Value norm(DecoderGraph& b, const std::string& name, Value x) const;
  virtual Value attention(DecoderGraph& b, const std::string& name, int64_t n, Value x) const;
  virtual Value mlp(DecoderGraph& b, const std::string& name, Value x) const;
  // Turned queries and keys over values, all [B,T,H,D], and the projection of what comes out.
  Value attended(DecoderGraph& b, const std::string& name, int64_t n, Value q, Value k, Value v) const;
  // The window of layer n, 0 where it has none.
  int64_t window_of(int64_t n) const { return windows.empty() ? 0 : windows[static_cast<size_t>(n)]; }

  std::string prefix = "model.";
  int64_t layers = 0, dim = 0, heads = 0, kv_heads = 0, head_dim = 0, hidden = 0;
  double epsilon = 1e-6;
  HfActivation activation = HfActivation::kSilu;
  HfRope rope;
  std::vector<int64_t> windows;  // one per layer; empty: none
  double scale = 0;              // of scores; 0: 1 / sqrt(head_dim)
  double score_cap = 0;          // 0: none
  double embedding_scale = 1;
  // Of the projections back into the residual stream; none: as the others.
  std::optional<double> residual_deviation = {};
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool head_norms = false;     // q_norm and k_norm over each head, before it is turned
  bool norms_add_one = false;  // norms multiply by 1 + weight, and weights begin at 0
};

}  // namespace lockstep

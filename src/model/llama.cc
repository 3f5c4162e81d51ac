#include "model/llama.h"

#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "model/family.h"
#include "model/layers.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

constexpr double kDeviation = 0.02;

class Llama {
 public:
  Llama(Model& model, const LlamaSizes& sizes)
      : sizes_(sizes),
        b_(model),
        attention_{.heads = sizes.heads, .kv_heads = sizes.kv_heads, .causal = true} {}

  void build() {
    const int64_t rows = sizes_.batch * sizes_.seq;
    const Shape positions{sizes_.batch, sizes_.seq};
    const Value tokens = b_.indices("tokens", positions, sizes_.vocab);
    const Value targets = b_.indices("targets", positions, sizes_.vocab);
    if (sizes_.documents) {
      attention_.documents = b_.input("documents", {DType::kI32, positions});
      positions_ = b_.indices("positions", positions, sizes_.seq);
    }
    const Value table = b_.normal("model.embed_tokens.weight", {sizes_.vocab, sizes_.dim}, kDeviation);
    Value x = b_.embedding(table, tokens);
    for (int64_t layer = 0; layer < sizes_.layers; ++layer)
      x = block(fmt::format("model.layers.{}.", layer), x);
    x = b_.reshape(b_.rms_norm("model.norm", x, sizes_.norm_epsilon), {rows, sizes_.dim});
    const Value logits = sizes_.tied ? b_.matmul(x, table, false, true)
                                     : b_.linear_without_bias("lm_head", x, sizes_.vocab, kDeviation);
    b_.classify(logits, b_.reshape(targets, {rows}), sizes_.training);
  }

 private:
  Value block(const std::string& name, Value x) {
    x = b_.op("checkpoint", {x});
    // Projections back into the residual stream are scaled down with depth, as in gpt.
    const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(sizes_.layers));
    const Value normed = b_.rms_norm(name + "input_layernorm", x, sizes_.norm_epsilon);
    const Value q = turned(heads(name + "self_attn.q_proj", normed, sizes_.heads));
    const Value k = turned(heads(name + "self_attn.k_proj", normed, sizes_.kv_heads));
    const Value v = heads(name + "self_attn.v_proj", normed, sizes_.kv_heads);
    const Value mixed = b_.attention(q, k, v, attention_);
    x = b_.add(x, b_.linear_without_bias(name + "self_attn.o_proj", mixed, sizes_.dim, residual));
    const Value inner = b_.rms_norm(name + "post_attention_layernorm", x, sizes_.norm_epsilon);
    return b_.add(x, b_.gated_mlp(name + "mlp", inner, sizes_.hidden, kDeviation, residual));
  }

  Value heads(const std::string& name, Value x, int64_t count) {
    const int64_t head_dim = sizes_.dim / sizes_.heads;
    return b_.split_heads(b_.linear_without_bias(name, x, count * head_dim, kDeviation), count);
  }

  Value turned(Value heads) { return b_.rope(heads, sizes_.rope_theta, positions_); }

  LlamaSizes sizes_;
  Layers b_;
  AttentionLayer attention_;
  Value positions_;  // of rows with several documents
};

std::optional<SizeProblem> check(const ModelSizes& sizes) {
  if (auto problem = check_heads(sizes)) return problem;
  if (sizes.dim / sizes.heads % 2 != 0)
    return SizeProblem{"heads", sizes.heads,
                       fmt::format("gives heads of width {}, and rotary positions turn pairs of elements; "
                                   "choose dim and heads so that dim / heads is even",
                                   sizes.dim / sizes.heads)};
  const int64_t kv_heads = sizes.kv_heads.value_or(sizes.heads);
  if (sizes.heads % kv_heads == 0) return std::nullopt;
  return SizeProblem{"kv_heads", kv_heads,
                     fmt::format("does not divide model.heads {}; use {}", sizes.heads,
                                 fmt::join(nearest_divisors(sizes.heads, kv_heads), " or "))};
}

}  // namespace

int64_t llama_hidden(int64_t dim) { return (8 * dim / 3 + 255) / 256 * 256; }

Model build_llama(const LlamaSizes& sizes) {
  Model model{Graph(all_ops(), "llama"), {}, sizes.batch, sizes.batch * sizes.seq, {}, Task::kNextToken};
  Llama(model, sizes).build();
  return model;
}

ModelFamily llama_family() {
  const ModelSizes defaults{.layers = 12, .dim = 768, .heads = 12, .vocab = 32000, .seq = 256};
  const ModelSizes small{.layers = 4, .dim = 64, .heads = 4, .vocab = 256, .seq = 64, .kv_heads = 2};
  const ModelSizes one_billion{
      .layers = 22, .dim = 2048, .heads = 32, .vocab = 32000, .seq = 2048, .kv_heads = 4};
  const ModelSizes seven_billion{.layers = 32, .dim = 4096, .heads = 32, .vocab = 32000, .seq = 2048};
  return {.name = "llama",
          .records = Records::kTokens,
          .keys = {"layers", "dim", "heads", "kv_heads", "hidden", "vocab", "seq", "rope_theta",
                   "norm_epsilon", "tied"},
          .defaults = defaults,
          .examples = {{"llama", defaults, 4},
                       {"llama-small", small, 8},
                       {"llama-1b", one_billion, 8},
                       {"llama-7b", seven_billion, 4}},
          .check = check,
          .build = [](const ModelSizes& sizes, const InputSizes& inputs, int64_t batch, bool training) {
            return build_llama({.layers = sizes.layers,
                                .dim = sizes.dim,
                                .heads = sizes.heads,
                                .kv_heads = sizes.kv_heads.value_or(sizes.heads),
                                .hidden = sizes.hidden.value_or(llama_hidden(sizes.dim)),
                                .vocab = sizes.vocab,
                                .batch = batch,
                                .seq = sizes.seq,
                                .rope_theta = sizes.rope_theta,
                                .norm_epsilon = sizes.norm_epsilon,
                                .tied = sizes.tied,
                                .training = training,
                                .documents = inputs.documents});
          }};
}

}  // namespace lockstep

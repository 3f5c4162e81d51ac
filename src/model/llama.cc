#include "model/llama.h"

#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "model/family.h"
#include "model/hf/gated_decoder.h"

namespace lockstep {
namespace {

// The family of Hugging Face folders (model/hf/llama.cc) with sizes of its own.
class SizedLlama final : public GatedDecoder {
 public:
  explicit SizedLlama(const LlamaSizes& sizes) {
    model_type = "llama";
    vocab = sizes.vocab;
    max_positions = sizes.seq;
    tied = sizes.tied;
    layers = sizes.layers;
    dim = sizes.dim;
    heads = sizes.heads;
    kv_heads = sizes.kv_heads;
    head_dim = sizes.dim / sizes.heads;
    hidden = sizes.hidden;
    epsilon = sizes.norm_epsilon;
    rope = HfRope(sizes.rope_theta, head_dim);
    // Projections back into the residual stream are scaled down with depth, as in gpt.
    residual_deviation = deviation / std::sqrt(2.0 * static_cast<double>(sizes.layers));
  }
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
  return SizedLlama(sizes).build(
      {.batch = sizes.batch, .seq = sizes.seq, .training = sizes.training, .documents = sizes.documents});
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

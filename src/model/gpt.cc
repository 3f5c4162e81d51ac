#include "model/gpt.h"

#include <cmath>

#include "base/error.h"
#include "model/family.h"
#include "model/layers.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

constexpr double kDeviation = 0.02;
constexpr double kEpsilon = 1e-5;

class Gpt {
 public:
  Gpt(Model& model, const GptSizes& sizes)
      : sizes_(sizes), b_(model), attention_{.heads = sizes.heads, .kv_heads = sizes.heads, .causal = true} {
    if (sizes.training) b_.use_dropout(sizes.dropout);
  }

  void build() {
    const int64_t rows = sizes_.batch * sizes_.seq;
    const Value tokens = b_.indices("tokens", {sizes_.batch, sizes_.seq}, sizes_.vocab);
    const Value targets = b_.indices("targets", {sizes_.batch, sizes_.seq}, sizes_.vocab);
    const Value table = b_.normal("wte.weight", {sizes_.vocab, sizes_.dim}, kDeviation);
    const Value positions = b_.normal("wpe.weight", {sizes_.seq, sizes_.dim}, kDeviation);
    Value x = b_.dropout(b_.add(b_.embedding(table, tokens), placed(positions)));
    for (int64_t layer = 0; layer < sizes_.layers; ++layer) x = block(fmt::format("h.{}.", layer), x);
    x = b_.layer_norm("ln_f", x, kEpsilon);
    const Value logits = b_.matmul(b_.reshape(x, {rows, sizes_.dim}), table, false, true);
    b_.classify(logits, b_.reshape(targets, {rows}), sizes_.training);
  }

 private:
  // The rows of the table of positions: as they come, or those that the data names.
  Value placed(Value table) {
    if (!sizes_.documents) return table;
    attention_.documents = b_.input("documents", {DType::kI32, {sizes_.batch, sizes_.seq}});
    return b_.embedding(table, b_.indices("positions", {sizes_.batch, sizes_.seq}, sizes_.seq));
  }

  Value block(const std::string& name, Value x) {
    x = b_.op("checkpoint", {x});
    // Projections back into the residual stream are scaled down with depth, as GPT-2 does.
    const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(sizes_.layers));
    const Value normed = b_.layer_norm(name + "ln_1", x, kEpsilon);
    const Value qkv = b_.linear_in_out(name + "attn.c_attn", normed, 3 * sizes_.dim, kDeviation);
    const Value mixed = b_.attention_qkv(qkv, attention_);
    x = b_.add(x, b_.dropout(b_.linear_in_out(name + "attn.c_proj", mixed, sizes_.dim, residual)));
    const Value hidden = b_.linear_in_out(name + "mlp.c_fc", b_.layer_norm(name + "ln_2", x, kEpsilon),
                                          4 * sizes_.dim, kDeviation);
    const Value active = b_.op("gelu", {hidden}, {{"approximate", std::string("tanh")}});
    return b_.add(x, b_.dropout(b_.linear_in_out(name + "mlp.c_proj", active, sizes_.dim, residual)));
  }

  GptSizes sizes_;
  Layers b_;
  AttentionLayer attention_;
};

}  // namespace

Model build_gpt(const GptSizes& sizes) {
  Model model{Graph(all_ops(), "gpt"), {}, sizes.batch, sizes.batch * sizes.seq, {}, Task::kNextToken};
  Gpt(model, sizes).build();
  return model;
}

ModelFamily gpt_family() {
  ModelSizes defaults{.layers = 12, .dim = 768, .heads = 12, .vocab = 50304, .seq = 256};
  ModelSizes small{.layers = 4, .dim = 64, .heads = 4, .vocab = 256, .seq = 64};
  return {.name = "gpt",
          .records = Records::kTokens,
          .keys = {"layers", "dim", "heads", "vocab", "seq", "dropout"},
          .defaults = defaults,
          .examples = {{"gpt", defaults, 4}, {"gpt-small", small, 8}},
          .check = check_heads,
          .build = [](const ModelSizes& sizes, const InputSizes& inputs, int64_t batch, bool training) {
            return build_gpt({.layers = sizes.layers,
                              .dim = sizes.dim,
                              .heads = sizes.heads,
                              .vocab = sizes.vocab,
                              .batch = batch,
                              .seq = sizes.seq,
                              .dropout = sizes.dropout,
                              .training = training,
                              .documents = inputs.documents});
          }};
}

}  // namespace lockstep

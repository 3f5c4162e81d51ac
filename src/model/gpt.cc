#include "model/gpt.h"

#include <cmath>

#include "base/error.h"
#include "model/model_builder.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

constexpr double kDeviation = 0.02;
constexpr double kEpsilon = 1e-5;

class Gpt {
 public:
  Gpt(Model& model, const GptSizes& sizes) : sizes_(sizes), b_(model) {
    if (drops()) rng_ = b_.input("rng", {DType::kI64, {2}});
  }

  void build() {
    const int64_t rows = sizes_.batch * sizes_.seq;
    const Value tokens = b_.indices("tokens", {sizes_.batch, sizes_.seq}, sizes_.vocab);
    const Value targets = b_.indices("targets", {sizes_.batch, sizes_.seq}, sizes_.vocab);
    const Value table = b_.normal("wte.weight", {sizes_.vocab, sizes_.dim}, kDeviation);
    const Value positions = b_.normal("wpe.weight", {sizes_.seq, sizes_.dim}, kDeviation);
    Value x = dropout(b_.add(b_.embedding(table, tokens), placed(positions)));
    for (int64_t layer = 0; layer < sizes_.layers; ++layer) x = block(fmt::format("h.{}.", layer), x);
    x = b_.layer_norm("ln_f", x, kEpsilon);
    const Value logits = b_.matmul(b_.reshape(x, {rows, sizes_.dim}), table, false, true);
    b_.classify(logits, b_.reshape(targets, {rows}), sizes_.training);
  }

 private:
  // The rows of the table of positions: as they come, or those that the data names.
  Value placed(Value table) {
    if (!sizes_.documents) return table;
    documents_ = b_.input("documents", {DType::kI32, {sizes_.batch, sizes_.seq}});
    return b_.embedding(table, b_.indices("positions", {sizes_.batch, sizes_.seq}, sizes_.seq));
  }

  Value attention(Value qkv) {
    const int64_t head_dim = sizes_.dim / sizes_.heads;
    Attributes attributes{{"heads", sizes_.heads},
                          {"kv_heads", sizes_.heads},
                          {"causal", true},
                          {"scale", 1.0 / std::sqrt(static_cast<double>(head_dim))}};
    if (!sizes_.documents) return b_.op("attention_qkv", {qkv}, attributes);
    attributes.set("mask", std::string("documents"));
    return b_.op("attention_qkv", {qkv, documents_}, attributes);
  }

  Value block(const std::string& name, Value x) {
    x = b_.op("checkpoint", {x});
    // Projections back into the residual stream are scaled down with depth, as GPT-2 does.
    const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(sizes_.layers));
    const Value normed = b_.layer_norm(name + "ln_1", x, kEpsilon);
    const Value qkv = b_.linear_in_out(name + "attn.c_attn", normed, 3 * sizes_.dim, kDeviation);
    const Value mixed = attention(qkv);
    x = b_.add(x, dropout(b_.linear_in_out(name + "attn.c_proj", mixed, sizes_.dim, residual)));
    const Value hidden = b_.linear_in_out(name + "mlp.c_fc", b_.layer_norm(name + "ln_2", x, kEpsilon),
                                          4 * sizes_.dim, kDeviation);
    const Value active = b_.op("gelu", {hidden}, {{"approximate", std::string("tanh")}});
    return b_.add(x, dropout(b_.linear_in_out(name + "mlp.c_proj", active, sizes_.dim, residual)));
  }

  bool drops() const { return sizes_.training && sizes_.dropout > 0; }

  Value dropout(Value x) {
    if (!drops()) return x;
    return b_.op("dropout", {x, rng_}, {{"p", sizes_.dropout}, {"key", next_key_++}});
  }

  GptSizes sizes_;
  ModelBuilder b_;
  Value rng_, documents_;
  int64_t next_key_ = 0;
};

}  // namespace

Model build_gpt(const GptSizes& sizes) {
  if (sizes.heads < 1 || sizes.dim % sizes.heads != 0)
    throw UserError("gpt: heads {} does not divide dim {}; choose a divisor", sizes.heads, sizes.dim);
  Model model{Graph(all_ops(), "gpt"), {}, sizes.batch, sizes.batch * sizes.seq, {}, Task::kNextToken};
  Gpt(model, sizes).build();
  return model;
}

}  // namespace lockstep

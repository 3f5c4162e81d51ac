#include "model/encoder.h"

#include <cmath>

#include "base/error.h"
#include "model/model_builder.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

constexpr double kDeviation = 0.02;
constexpr double kEpsilon = 1e-12;

class Encoder {
 public:
  Encoder(Model& model, const EncoderSizes& sizes) : sizes_(sizes), b_(model) {
    if (drops()) rng_ = b_.input("rng", {DType::kI64, {2}});
    if (sizes.padded) visible_ = b_.input("keys_visible", {DType::kU8, {sizes.batch, sizes.seq}});
  }

  void build() {
    const Shape positions{sizes_.batch, sizes_.seq};
    const Value tokens = b_.indices("tokens", positions, sizes_.vocab);
    const Value segments = b_.indices("segments", positions, 2);
    const Value labels = b_.indices("labels", {sizes_.batch}, sizes_.classes);
    Value x = b_.embedding(
        b_.normal("embeddings.word_embeddings.weight", {sizes_.vocab, sizes_.dim}, kDeviation), tokens);
    x = b_.add(x, b_.normal("embeddings.position_embeddings.weight", {sizes_.seq, sizes_.dim}, kDeviation));
    x = b_.add(x,
               b_.embedding(b_.normal("embeddings.token_type_embeddings.weight", {2, sizes_.dim}, kDeviation),
                            segments));
    x = dropout(b_.layer_norm("embeddings.LayerNorm", x, kEpsilon));
    for (int64_t layer = 0; layer < sizes_.layers; ++layer)
      x = block(fmt::format("encoder.layer.{}.", layer), x);
    const Value first = b_.reshape(b_.slice(x, 1, 0, 1), {sizes_.batch, sizes_.dim});
    const Value pooled = dropout(b_.tanh(b_.linear("pooler.dense", first, sizes_.dim, kDeviation)));
    const Value logits = b_.linear("classifier", pooled, sizes_.classes, kDeviation);
    b_.classify(logits, labels, sizes_.training);
  }

 private:
  Value block(const std::string& name, Value x) {
    x = b_.op("checkpoint", {x});
    const Value q = heads(b_.linear(name + "attention.self.query", x, sizes_.dim, kDeviation));
    const Value k = heads(b_.linear(name + "attention.self.key", x, sizes_.dim, kDeviation));
    const Value v = heads(b_.linear(name + "attention.self.value", x, sizes_.dim, kDeviation));
    const int64_t head_dim = sizes_.dim / sizes_.heads;
    const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
    Value mixed = sizes_.padded ? b_.op("attention", {q, k, v, visible_},
                                        {{"scale", scale}, {"mask", std::string("keys")}})
                                : b_.op("attention", {q, k, v}, {{"scale", scale}});
    mixed = b_.reshape(mixed, b_.shape(x));
    x = b_.add(x, dropout(b_.linear(name + "attention.output.dense", mixed, sizes_.dim, kDeviation)));
    x = b_.layer_norm(name + "attention.output.LayerNorm", x, kEpsilon);
    const Value hidden =
        b_.op("gelu", {b_.linear(name + "intermediate.dense", x, sizes_.hidden, kDeviation)});
    x = b_.add(x, dropout(b_.linear(name + "output.dense", hidden, sizes_.dim, kDeviation)));
    return b_.layer_norm(name + "output.LayerNorm", x, kEpsilon);
  }

  Value heads(Value x) {
    return b_.reshape(x, {sizes_.batch, sizes_.seq, sizes_.heads, sizes_.dim / sizes_.heads});
  }

  bool drops() const { return sizes_.training && sizes_.dropout > 0; }

  Value dropout(Value x) {
    if (!drops()) return x;
    return b_.op("dropout", {x, rng_}, {{"p", sizes_.dropout}, {"key", next_key_++}});
  }

  EncoderSizes sizes_;
  ModelBuilder b_;
  Value rng_;
  Value visible_;
  int64_t next_key_ = 0;
};

}  // namespace

Model build_encoder(const EncoderSizes& sizes) {
  if (sizes.heads < 1 || sizes.dim % sizes.heads != 0)
    throw UserError("encoder: heads {} does not divide dim {}; choose a divisor", sizes.heads, sizes.dim);
  Model model{Graph(all_ops(), "encoder"), {}, sizes.batch, sizes.batch * sizes.seq, {}, Task::kClassify};
  Encoder(model, sizes).build();
  return model;
}

}  // namespace lockstep

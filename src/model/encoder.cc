#include "model/encoder.h"

#include <cmath>

#include "base/error.h"
#include "model/family.h"
#include "model/layers.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

constexpr double kDeviation = 0.02;
constexpr double kEpsilon = 1e-12;

class Encoder {
 public:
  Encoder(Model& model, const EncoderSizes& sizes)
      : sizes_(sizes), b_(model), attention_{.heads = sizes.heads, .kv_heads = sizes.heads} {
    if (sizes.training) b_.use_dropout(sizes.dropout);
    if (sizes.padded)
      attention_.keys_visible = b_.input("keys_visible", {DType::kU8, {sizes.batch, sizes.seq}});
  }

  void build() {
    const Shape positions{sizes_.batch, sizes_.seq};
    const Value tokens = b_.indices("tokens", positions, sizes_.vocab);
    const Value segments = b_.indices("segments", positions, 2);
    const Value labels = b_.indices("labels", {sizes_.batch}, sizes_.classes);
    Value x = b_.embedding("embeddings.word_embeddings", tokens, sizes_.vocab, sizes_.dim, kDeviation);
    x = b_.add(x, b_.normal("embeddings.position_embeddings.weight", {sizes_.seq, sizes_.dim}, kDeviation));
    x = b_.add(x, b_.embedding("embeddings.token_type_embeddings", segments, 2, sizes_.dim, kDeviation));
    x = b_.dropout(b_.layer_norm("embeddings.LayerNorm", x, kEpsilon));
    for (int64_t layer = 0; layer < sizes_.layers; ++layer)
      x = block(fmt::format("encoder.layer.{}.", layer), x);
    const Value first = b_.reshape(b_.slice(x, 1, 0, 1), {sizes_.batch, sizes_.dim});
    const Value pooled = b_.dropout(b_.tanh(b_.linear("pooler.dense", first, sizes_.dim, kDeviation)));
    const Value logits = b_.linear("classifier", pooled, sizes_.classes, kDeviation);
    b_.classify(logits, labels, sizes_.training);
  }

 private:
  Value block(const std::string& name, Value x) {
    x = b_.op("checkpoint", {x});
    const Value q = heads(name + "attention.self.query", x);
    const Value k = heads(name + "attention.self.key", x);
    const Value v = heads(name + "attention.self.value", x);
    const Value mixed = b_.attention(q, k, v, attention_);
    x = b_.add(x, b_.dropout(b_.linear(name + "attention.output.dense", mixed, sizes_.dim, kDeviation)));
    x = b_.layer_norm(name + "attention.output.LayerNorm", x, kEpsilon);
    const Value hidden =
        b_.op("gelu", {b_.linear(name + "intermediate.dense", x, sizes_.hidden, kDeviation)});
    x = b_.add(x, b_.dropout(b_.linear(name + "output.dense", hidden, sizes_.dim, kDeviation)));
    return b_.layer_norm(name + "output.LayerNorm", x, kEpsilon);
  }

  Value heads(const std::string& name, Value x) {
    return b_.split_heads(b_.linear(name, x, sizes_.dim, kDeviation), sizes_.heads);
  }

  EncoderSizes sizes_;
  Layers b_;
  AttentionLayer attention_;
};

}  // namespace

Model build_encoder(const EncoderSizes& sizes) {
  Model model{Graph(all_ops(), "encoder"), {}, sizes.batch, sizes.batch * sizes.seq, {}, Task::kClassify};
  Encoder(model, sizes).build();
  return model;
}

ModelFamily encoder_family() {
  const ModelSizes defaults{.layers = 12, .dim = 768, .heads = 12, .vocab = 30522, .seq = 128, .classes = 2};
  return {.name = "encoder",
          .records = Records::kText,
          .keys = {"layers", "dim", "heads", "hidden", "vocab", "seq", "dropout", "classes"},
          .defaults = defaults,
          .examples = {{"encoder", defaults, 8}},
          .check = check_heads,
          .build = [](const ModelSizes& sizes, const InputSizes& inputs, int64_t batch, bool training) {
            return build_encoder({.layers = sizes.layers,
                                  .dim = sizes.dim,
                                  .heads = sizes.heads,
                                  .hidden = sizes.hidden.value_or(4 * sizes.dim),
                                  .vocab = sizes.vocab,
                                  .classes = sizes.classes,
                                  .batch = batch,
                                  .seq = sizes.seq,
                                  .dropout = sizes.dropout,
                                  .padded = inputs.padded,
                                  .training = training});
          }};
}

}  // namespace lockstep

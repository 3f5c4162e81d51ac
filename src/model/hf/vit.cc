// vit: an image as a row of patches, under BERT's blocks with the norm before each branch (Dosovitskiy et
// al., 2020); the class is read from a position of its own in front of the patches.
#include "base/error.h"
#include "model/hf/activation.h"
#include "model/hf/family.h"
#include "model/hf/text_encoder.h"
#include "model/layers.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

class HfVit final : public HfModel {
 public:
  HfVit(const HfConfig& config, HfHead) {
    dim = config.size("hidden_size", 768, 1);
    layers = config.size("num_hidden_layers", 12, 1);
    heads = config.size("num_attention_heads", 12, 1);
    check_head_width(config, "num_attention_heads", dim, heads);
    hidden = config.size("intermediate_size", 3072, 1);
    image = config.size("image_size", 224, 1);
    patch = config.size("patch_size", 16, 1);
    if (image % patch != 0) config.fail("patch_size", fmt::format("it does not divide image_size {}", image));
    channels = config.size("num_channels", 3, 1);
    epsilon = config.number("layer_norm_eps", 1e-12);
    deviation = config.number("initializer_range", 0.02);
    activation = read_activation(config, "hidden_act", "gelu");
    dropout = read_dropout(config, "hidden_dropout_prob", 0.0);
    attention_dropout = read_dropout(config, "attention_probs_dropout_prob", 0.0);
    qkv_bias = config.flag("qkv_bias", true);
    classes = read_class_count(config, HfHead::kImageClass);
    config.require("head_dim", "null", "heads of another width than hidden_size / heads are not implemented");
    config.ignore({"pooler_act", "pooler_output_size"});
    base_prefix = "vit.";
  }

  Model build(const HfGraph& graph) const override {
    LOCKSTEP_CHECK(graph.cache == 0, "{} does not generate", model_type);
    Model model{Graph(all_ops(), "vit"), {}, graph.batch, 0, {}, Task::kClassify};
    Layers b(model);
    const Value images = b.input("images", {DType::kF32, {graph.batch, image, image, channels}});
    const Value labels = b.indices("labels", {graph.batch}, classes);
    const auto in_training = [&](double probability) { return graph.training ? probability : 0; };
    Value x = b.dropout(embeddings(b, "vit.embeddings.", images), in_training(dropout));
    for (int64_t n = 0; n < layers; ++n)
      x = block(b, fmt::format("vit.encoder.layer.{}.", n), x, in_training(dropout),
                in_training(attention_dropout));
    // Of all positions only the first is read, and a norm looks at no other.
    const Value first = b.reshape(b.slice(x, 1, 0, 1), {graph.batch, dim});
    const Value normed = b.layer_norm("vit.layernorm", first, epsilon);
    b.classify(b.linear("classifier", normed, classes, deviation), labels, graph.training);
    return model;
  }

 private:
  int64_t side() const { return image / patch; }

  // A convolution whose stride is its kernel: every patch is a row of C*p*p numbers, in the order of the
  // filter [width, C, p, p] on disk, so that the filter is the matrix of a product as it lies.
  Value patches(Layers& b, const std::string& name, Value images) const {
    const int64_t batch = b.shape(images)[0], each = channels * patch * patch;
    const Value cut = b.reshape(images, {batch, side(), patch, side(), patch, channels});
    const Value rows = b.reshape(b.transpose(cut, {0, 1, 3, 5, 2, 4}), {batch, side() * side(), each});
    const Value filter = b.normal(name + ".weight", {dim, channels, patch, patch}, deviation);
    const Value bias = b.zeros(name + ".bias", {dim});
    return b.add(b.matmul(rows, b.reshape(filter, {dim, each}), false, true), bias);
  }

  Value embeddings(Layers& b, const std::string& name, Value images) const {
    const int64_t batch = b.shape(images)[0];
    const Value class_token = b.normal(name + "cls_token", {1, 1, dim}, deviation);
    const Value positions = b.normal(name + "position_embeddings", {1, side() * side() + 1, dim}, deviation);
    const Value rows = patches(b, name + "patch_embeddings.projection", images);
    return b.add(b.concat({b.broadcast(class_token, {batch, 1, dim}), rows}, 1), positions);
  }

  Value block(Layers& b, const std::string& name, Value x, double p, double attention_p) const {
    x = b.op("checkpoint", {x});
    const Value normed = b.layer_norm(name + "layernorm_before", x, epsilon);
    const auto head_rows = [&](const char* part) {
      const std::string projection = name + "attention.attention." + part;
      return b.split_heads(qkv_bias ? b.linear(projection, normed, dim, deviation)
                                    : b.linear_without_bias(projection, normed, dim, deviation),
                           heads);
    };
    const Value q = head_rows("query");
    const Value k = head_rows("key");
    const Value v = head_rows("value");
    const Value mixed = b.attention(q, k, v, {.heads = heads, .kv_heads = heads, .dropout = attention_p});
    x = b.add(b.dropout(b.linear(name + "attention.output.dense", mixed, dim, deviation), p), x);
    const Value after = b.layer_norm(name + "layernorm_after", x, epsilon);
    const Value wide =
        activate(b, activation, b.linear(name + "intermediate.dense", after, hidden, deviation));
    return b.add(b.dropout(b.linear(name + "output.dense", wide, dim, deviation), p), x);
  }

  int64_t layers = 0, dim = 0, heads = 0, hidden = 0, patch = 0, channels = 0;
  double epsilon = 1e-12, deviation = 0.02, dropout = 0, attention_dropout = 0;
  bool qkv_bias = true;
  HfActivation activation = HfActivation::kGelu;
};

}  // namespace

HfFamily vit_hf_family() {
  return {"vit",
          {{"ViTForImageClassification", HfHead::kImageClass}},
          [](const HfConfig& config, HfHead head) -> std::unique_ptr<HfModel> {
            return std::make_unique<HfVit>(config, head);
          }};
}

}  // namespace lockstep

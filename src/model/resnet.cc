#include "model/resnet.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "model/family.h"
#include "model/layers.h"
#include "ops/registry.h"

namespace lockstep {
namespace {

class Resnet {
 public:
  Resnet(Model& model, const ResnetSizes& sizes) : sizes_(sizes), b_(model) {}

  void build() {
    const Value images = b_.input("images", {DType::kF32, {sizes_.batch, sizes_.image, sizes_.image, 3}});
    const Value labels = b_.indices("labels", {sizes_.batch}, sizes_.classes);
    Value x = relu(norm("bn1", conv("conv1", images, sizes_.width, 7, 2)));
    x = b_.op("max_pool2d", {x},
              {{"kernel", std::vector<int64_t>{3, 3}},
               {"stride", std::vector<int64_t>{2, 2}},
               {"padding", std::vector<int64_t>{1, 1, 1, 1}}});
    const bool deep = sizes_.depth == 50;
    const std::array<int64_t, 4> counts =
        deep ? std::array<int64_t, 4>{3, 4, 6, 3} : std::array<int64_t, 4>{2, 2, 2, 2};
    for (int64_t stage = 0; stage < 4; ++stage)
      for (int64_t i = 0; i < counts[static_cast<size_t>(stage)]; ++i) {
        const std::string name = fmt::format("layer{}.{}.", stage + 1, i);
        const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        x = deep ? bottleneck(name, x, sizes_.width << stage, stride)
                 : basic(name, x, sizes_.width << stage, stride);
      }
    const double bound = 1.0 / std::sqrt(static_cast<double>(b_.shape(x)[-1]));
    const Value pooled = b_.mean(x, {1, 2});
    const Value weight = b_.uniform("fc.weight", {sizes_.classes, b_.shape(x)[-1]}, bound);
    const Value bias = b_.uniform("fc.bias", {sizes_.classes}, bound, false);
    b_.classify(b_.add(b_.matmul(pooled, weight, false, true), bias), labels, sizes_.training);
    b_.write_statistics();
  }

 private:
  Value basic(const std::string& name, Value x, int64_t width, int64_t stride) {
    x = b_.op("checkpoint", {x});
    Value y = relu(norm(name + "bn1", conv(name + "conv1", x, width, 3, stride)));
    y = norm(name + "bn2", conv(name + "conv2", y, width, 3, 1));
    return relu(b_.add(y, shortcut(name, x, width, stride)));
  }

  Value bottleneck(const std::string& name, Value x, int64_t width, int64_t stride) {
    x = b_.op("checkpoint", {x});
    Value y = relu(norm(name + "bn1", conv(name + "conv1", x, width, 1, 1)));
    y = relu(norm(name + "bn2", conv(name + "conv2", y, width, 3, stride)));
    y = norm(name + "bn3", conv(name + "conv3", y, 4 * width, 1, 1));
    return relu(b_.add(y, shortcut(name, x, 4 * width, stride)));
  }

  Value shortcut(const std::string& name, Value x, int64_t width, int64_t stride) {
    if (stride == 1 && b_.shape(x)[-1] == width) return x;
    return norm(name + "downsample.1", conv(name + "downsample.0", x, width, 1, stride));
  }

  Value conv(const std::string& name, Value x, int64_t width, int64_t kernel, int64_t stride) {
    // He et al. for a relu that follows, by fan-out.
    const double deviation = std::sqrt(2.0 / static_cast<double>(width * kernel * kernel));
    const Value filter = b_.normal(name + ".weight", {width, kernel, kernel, b_.shape(x)[-1]}, deviation);
    const int64_t pad = kernel / 2;
    return b_.op("conv2d", {x, filter},
                 {{"stride", std::vector<int64_t>{stride, stride}},
                  {"padding", std::vector<int64_t>{pad, pad, pad, pad}}});
  }

  Value norm(const std::string& name, Value x) { return b_.batch_norm(name, x, 1e-5, sizes_.training); }
  Value relu(Value x) { return b_.op("relu", {x}); }

  ResnetSizes sizes_;
  Layers b_;
};

}  // namespace

Model build_resnet(const ResnetSizes& sizes) {
  LOCKSTEP_CHECK(sizes.depth == 18 || sizes.depth == 50, "there is no resnet of depth {}", sizes.depth);
  Model model{Graph(all_ops(), "resnet"), {}, sizes.batch, 0, {}, Task::kClassify};
  Resnet(model, sizes).build();
  return model;
}

ModelFamily resnet_family() {
  const ModelSizes defaults{.classes = 1000, .depth = 18, .width = 64, .image = 64};
  ModelSizes deep = defaults;
  deep.depth = 50;
  return {.name = "resnet",
          .records = Records::kImages,
          .keys = {"classes", "depth", "width", "image"},
          .defaults = defaults,
          .examples = {{"resnet18", defaults, 16}, {"resnet50", deep, 16}},
          .check = [](const ModelSizes& sizes) -> std::optional<SizeProblem> {
            if (sizes.depth != 18 && sizes.depth != 50)
              return SizeProblem{"depth", sizes.depth, "is not there; use 18 or 50"};
            if (sizes.image < 32) return SizeProblem{"image", sizes.image, "is too small; use at least 32"};
            return std::nullopt;
          },
          .build =
              [](const ModelSizes& sizes, const InputSizes&, int64_t batch, bool training) {
                return build_resnet({.depth = sizes.depth,
                                     .width = sizes.width,
                                     .image = sizes.image,
                                     .classes = sizes.classes,
                                     .batch = batch,
                                     .training = training});
              }};
}

}  // namespace lockstep

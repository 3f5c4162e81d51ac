// resnet: ResNet-18 and ResNet-50 (v1.5: the stride sits on the 3x3 convolution), channels last, batch norm.
#pragma once
#include "model/model.h"

namespace lockstep {

struct ResnetSizes {
  int64_t depth = 18;  // 18 or 50
  int64_t width = 64;  // channels of the first stage
  int64_t image = 64;
  int64_t classes = 1000;
  int64_t batch = 16;
  bool training = true;  // false: the graph to evaluate with
};

// Inputs: images f32[B,S,S,3], labels i32[B]; the training graph writes the statistics of its batch norms
// (<norm>.running_mean, <norm>.running_var), the evaluation graph takes them.
Model build_resnet(const ResnetSizes& sizes);

}  // namespace lockstep

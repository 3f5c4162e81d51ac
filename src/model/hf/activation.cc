#include "model/hf/activation.h"

#include <fmt/format.h>

#include <iterator>

namespace lockstep {
namespace {

struct NamedActivation {
  std::string_view name;
  HfActivation activation;
};
constexpr NamedActivation kActivations[] = {{"silu", HfActivation::kSilu},
                                            {"swish", HfActivation::kSilu},
                                            {"gelu", HfActivation::kGelu},
                                            {"gelu_new", HfActivation::kGeluTanh},
                                            {"gelu_fast", HfActivation::kGeluTanh},
                                            {"gelu_pytorch_tanh", HfActivation::kGeluTanh},
                                            {"quick_gelu", HfActivation::kQuickGelu},
                                            {"relu", HfActivation::kRelu},
                                            {"tanh", HfActivation::kTanh}};

}  // namespace

HfActivation read_activation(const HfConfig& config, std::string_view key, std::string_view otherwise) {
  const std::string name = config.text(key, otherwise);
  std::vector<std::string_view> known;
  for (const NamedActivation& entry : kActivations) {
    if (entry.name == name) return entry.activation;
    known.push_back(entry.name);
  }
  config.fail(key, fmt::format("this activation is not implemented; known are {}", fmt::join(known, ", ")));
}

Value activate(Builder& b, HfActivation activation, Value x) {
  switch (activation) {
    case HfActivation::kSilu: return b.op("silu", {x});
    case HfActivation::kGelu: return b.op("gelu", {x});
    case HfActivation::kGeluTanh: return b.op("gelu", {x}, {{"approximate", std::string("tanh")}});
    case HfActivation::kQuickGelu: return b.mul(x, b.op("sigmoid", {b.scale(x, 1.702)}));
    case HfActivation::kRelu: return b.op("relu", {x});
    case HfActivation::kTanh: return b.tanh(x);
  }
  return x;
}

}  // namespace lockstep

// The activations that config.json names, such as "hidden_act": "gelu_pytorch_tanh".
#pragma once
#include "model/hf/config.h"
#include "ops/builder.h"

namespace lockstep {

enum class HfActivation : uint8_t {
  kSilu,       // silu, swish: x sigmoid(x)
  kGelu,       // gelu: x times the normal distribution function, through erf
  kGeluTanh,   // gelu_new, gelu_fast, gelu_pytorch_tanh: the same by the tanh formula
  kQuickGelu,  // quick_gelu: x sigmoid(1.702 x)
  kRelu,
  kTanh,
};

// Throws UserError for one that is not in the list above.
HfActivation read_activation(const HfConfig& config, std::string_view key, std::string_view otherwise);
Value activate(Builder& builder, HfActivation activation, Value x);

}  // namespace lockstep

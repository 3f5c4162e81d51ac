// LoRA (Hu et al. 2021): a model whose linear layers are frozen, each with a trained product of two narrow
// matrices beside it: y = base(x) + B(A(dropout(x))) * scale.
//
//   graph f(x: f32[4,2], fc.weight: f32[3,2] @param) { y = matmul(x, fc.weight) {transpose_b} ... }
// becomes, of rank 1 with scale 2,
//   graph f(x: f32[4,2], fc.weight: f32[3,2] @param, base_model.model.fc.lora_A.weight: f32[1,2] @param,
//           base_model.model.fc.lora_B.weight: f32[3,1] @param) {
//     y = matmul(x, fc.weight) {transpose_b}
//     a = matmul(x, lora_A) {transpose_b}  s = mul(a, 2)  b = matmul(s, lora_B) {transpose_b}  z = add(y, b)
//     ...
// Which parameters are frozen then is frozen_params.h's to do. Names, shapes, starts and scale are those of
// PEFT; a layer whose weight lies [in, out] (GPT-2) gets the same two matrices. The scale is applied between
// the two, where it is cheapest.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace lockstep {

enum class LoraStart : uint8_t {
  kUniform,   // A uniform within 1 / sqrt(in), B zero: PEFT's default
  kGaussian,  // A normal with deviation 1 / rank, B zero
};

struct LoraSettings {
  int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;
  bool rank_stabilised = false;  // scale alpha / sqrt(rank) instead of alpha / rank
  LoraStart start = LoraStart::kUniform;
  std::vector<std::string> modules;  // names of layers or their last parts; kAllLinear: all but the head

  double scale() const;
};

inline constexpr std::string_view kAllLinear = "all-linear";
// What PEFT writes before the names of a model's modules.
inline constexpr std::string_view kAdapterPrefix = "base_model.model.";

struct LinearLayer {
  std::string module;  // "model.layers.0.self_attn.q_proj"
  int64_t in = 0, out = 0;
  bool in_out = false;  // the weight lies [in, out]
};
// All of a model's, in the order of its graph. A table that is looked up somewhere is none, whoever else
// multiplies by it.
std::vector<LinearLayer> linear_layers(const Model& model);

// Those that get matrices. Throws UserError where a name fits none.
std::vector<LinearLayer> adapted_layers(const Model& model, const std::vector<std::string>& modules);

// To train dropout is drawn; to evaluate it is not.
Model with_lora(const Model& model, const LoraSettings& settings, bool training);

std::string lora_a_name(std::string_view module);
std::string lora_b_name(std::string_view module);
bool is_lora_name(std::string_view parameter);

}  // namespace lockstep

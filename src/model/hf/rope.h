// Rotary positions as config.json describes them, in the keys of transformers 4 (rope_theta, rope_scaling)
// and of 5 (rope_parameters), with all scalings: linear, dynamic, yarn, longrope, llama3.
//
// Frequencies are rounded to f32 where transformers rounds them; logarithms and powers have the same bits
// everywhere (base/portable_math.h).
#pragma once
#include "model/hf/config.h"

namespace lockstep {

// What rope turns by, for texts of one length.
struct HfRotation {
  double theta = 10000;
  std::vector<double> frequencies;  // one per pair; empty: those of theta
  double factor = 1;                // cosines and sines are multiplied by it
  int64_t dim = 0;                  // leading elements of a head that turn
};

class HfRope {
 public:
  struct Defaults {
    double theta = 10000;
    double partial = 1;  // the part of a head that turns
    // Keys at the top level, where the family calls them something else.
    std::string_view theta_key = "rope_theta";
    std::string_view partial_key = "partial_rotary_factor";
    bool only_longrope = false;                      // su and yarn mean longrope, as in phi3
    std::optional<int64_t> original_positions = {};  // none: those of the model
    bool ignores_scaling = false;                    // rope_scaling is for other layers, as in gemma3
  };

  HfRope() = default;
  // From the whole config; `kind` names the object inside rope_parameters where there is one per kind of
  // layer ("full_attention").
  HfRope(const HfConfig& config, int64_t head_dim, int64_t max_positions, const Defaults& defaults,
         std::string_view kind = {});

  // Without any scaling.
  HfRope(double theta, int64_t head_dim) : theta_(theta), dim_(head_dim) {}

  HfRotation at(int64_t length) const;
  // Texts of more tokens than `length`, up to so many, are turned in the same way.
  int64_t same_up_to(int64_t length) const;

 private:
  enum class Scaling : uint8_t { kNone, kLinear, kDynamic, kYarn, kLongrope, kLlama3 };
  void read_scaling(const HfConfig& config, const HfConfig& parameters, const Defaults& defaults,
                    bool per_kind);
  void read_longrope(const HfConfig& parameters);
  void read_yarn(const HfConfig& config, const HfConfig& parameters, bool per_kind);
  std::vector<float> yarn() const;
  std::vector<float> llama3() const;

  Scaling scaling_ = Scaling::kNone;
  double theta_ = 10000;
  int64_t dim_ = 0;
  int64_t max_positions_ = 0;       // L
  int64_t original_positions_ = 0;  // L0
  double factor_ = 1;               // F
  double attention_factor_ = 1;
  double beta_fast_ = 32, beta_slow_ = 1;
  bool truncate_ = true;
  double low_factor_ = 1, high_factor_ = 4;
  std::vector<double> short_factors_, long_factors_;
};

}  // namespace lockstep

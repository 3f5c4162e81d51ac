#include "model/hf/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/portable_math.h"
#include "ops/rope_frequencies.h"

namespace lockstep {
namespace {

// The object that describes the rotation: rope_scaling of version 4 replaces rope_parameters of version 5.
std::optional<HfConfig> parameters_of(const HfConfig& config, std::string_view kind, bool ignores_scaling) {
  const std::optional<HfConfig> scaling = config.object("rope_scaling");
  if (scaling) {
    config.ignore({"rope_parameters"});
    return ignores_scaling ? std::nullopt : scaling;
  }
  const std::optional<HfConfig> parameters = config.object("rope_parameters");
  if (!parameters || kind.empty() || !parameters->has(kind)) return parameters;
  return parameters->object(kind);
}

// As yarn grows attention with the factor of the length.
double yarn_scale(double factor, double weight) {
  return factor <= 1 ? 1.0 : 0.1 * weight * portable_log(factor) + 1.0;
}

std::vector<double> widened(const std::vector<float>& values) { return {values.begin(), values.end()}; }

}  // namespace

HfRope::HfRope(const HfConfig& config, int64_t head_dim, int64_t max_positions, const Defaults& defaults,
               std::string_view kind)
    : max_positions_(max_positions) {
  const double theta = config.number(defaults.theta_key, defaults.theta);
  const double partial = config.number(defaults.partial_key, defaults.partial);
  const std::optional<HfConfig> parameters = parameters_of(config, kind, defaults.ignores_scaling);
  theta_ = parameters ? parameters->number("rope_theta", theta) : theta;
  const double part = parameters ? parameters->number("partial_rotary_factor", partial) : partial;
  if (!(theta_ > 1)) config.fail(defaults.theta_key, "the base of rotary positions must be above 1");
  if (!(part > 0 && part <= 1))
    config.fail(defaults.partial_key, "the part of a head that turns is in (0, 1]");
  dim_ = static_cast<int64_t>(static_cast<double>(head_dim) * part);
  if (dim_ < 2 || dim_ > head_dim || dim_ % 2 != 0)
    config.fail(defaults.partial_key,
                fmt::format("of heads of width {} it turns {} elements; rotary positions turn pairs",
                            head_dim, dim_));
  // Written by some families whether or not there is a scaling.
  config.ignore({"original_max_position_embeddings"});
  if (parameters) read_scaling(config, *parameters, defaults, !kind.empty());
}

void HfRope::read_scaling(const HfConfig& config, const HfConfig& parameters, const Defaults& defaults,
                          bool per_kind) {
  const std::string old = parameters.text("type", "default");
  const std::string type = parameters.text("rope_type", old);
  const std::string_view key = parameters.has("rope_type") ? "rope_type" : "type";
  if (type == "default") return;
  const int64_t original = parameters.integer("original_max_position_embeddings", max_positions_);
  original_positions_ =
      config.integer("original_max_position_embeddings", defaults.original_positions.value_or(original));
  if (original_positions_ < 2) config.fail("original_max_position_embeddings", "it must be at least 2");
  const double ratio = static_cast<double>(max_positions_) / static_cast<double>(original_positions_);
  const bool longrope = type == "longrope" || (defaults.only_longrope && (type == "su" || type == "yarn"));
  if (defaults.only_longrope && !longrope)
    parameters.fail(key, "this family has no other scaling than longrope");
  const std::optional<double> factor = parameters.maybe_number("factor");
  if (!factor && !longrope && type != "yarn") parameters.fail("factor", "the scaling needs this number");
  factor_ = factor.value_or(ratio);
  if (!(factor_ > 0)) parameters.fail("factor", "it must be above 0");

  if (longrope) {
    read_longrope(parameters);
  } else if (type == "linear") {
    scaling_ = Scaling::kLinear;
  } else if (type == "dynamic") {
    scaling_ = Scaling::kDynamic;
    if (dim_ < 4) parameters.fail(key, "it needs heads that turn at least 4 elements");
  } else if (type == "yarn") {
    read_yarn(config, parameters, per_kind);
  } else if (type == "llama3") {
    scaling_ = Scaling::kLlama3;
    low_factor_ = parameters.number("low_freq_factor");
    high_factor_ = parameters.number("high_freq_factor");
    if (!(low_factor_ > 0 && high_factor_ > low_factor_))
      parameters.fail("high_freq_factor", "it must be above low_freq_factor, and both above 0");
  } else {
    parameters.fail(
        key, "this scaling is not implemented; known are default, linear, dynamic, yarn, longrope, llama3");
  }
}

void HfRope::read_longrope(const HfConfig& parameters) {
  scaling_ = Scaling::kLongrope;
  short_factors_ = parameters.numbers("short_factor");
  long_factors_ = parameters.numbers("long_factor");
  for (const auto& [key, factors] :
       {std::pair{"short_factor", &short_factors_}, {"long_factor", &long_factors_}})
    if (static_cast<int64_t>(factors->size()) != dim_ / 2)
      parameters.fail(key, fmt::format("it has {} numbers, one for each of {} pairs is needed",
                                       factors->size(), dim_ / 2));
  const double grown =
      factor_ <= 1
          ? 1.0
          : std::sqrt(1 + portable_log(factor_) / portable_log(static_cast<double>(original_positions_)));
  attention_factor_ = parameters.number("attention_factor", grown);
  // Written by some releases of Phi-3 beside the lists, and read by none.
  parameters.ignore({"short_mscale", "long_mscale"});
}

void HfRope::read_yarn(const HfConfig& config, const HfConfig& parameters, bool per_kind) {
  scaling_ = Scaling::kYarn;
  const double mscale = parameters.number("mscale", 0);
  const double mscale_all = parameters.number("mscale_all_dim", 0);
  const double grown = mscale != 0 && mscale_all != 0
                           ? yarn_scale(factor_, mscale) / yarn_scale(factor_, mscale_all)
                           : yarn_scale(factor_, 1);
  attention_factor_ = parameters.number("attention_factor", grown);
  beta_fast_ = parameters.number("beta_fast", 32);
  beta_slow_ = parameters.number("beta_slow", 1);
  if (beta_fast_ == 0) beta_fast_ = 32;
  if (beta_slow_ == 0) beta_slow_ = 1;
  // Where there is an object per kind of layer, transformers looks for this key outside of it.
  if (per_kind)
    parameters.require("truncate", "true", "transformers passes over it here");
  else
    truncate_ = parameters.flag("truncate", true);
  if (!(beta_fast_ > 0 && beta_slow_ > 0))
    config.fail("rope_scaling", "beta_fast and beta_slow must be above 0");
}

std::vector<float> HfRope::yarn() const {
  // The pair that turns this often over the original length.
  const auto pair_turning = [&](double turns) {
    return static_cast<double>(dim_) *
           portable_log(static_cast<double>(original_positions_) / (turns * 2 * std::numbers::pi)) /
           (2 * portable_log(theta_));
  };
  double low = pair_turning(beta_fast_), high = pair_turning(beta_slow_);
  if (truncate_) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim_ - 1));
  if (low == high) high += 0.001;
  std::vector<float> result = rope_wavelengths(theta_, dim_ / 2);
  for (size_t i = 0; i < result.size(); ++i) {
    const float ramp = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float kept = 1.0f - std::clamp(ramp, 0.0f, 1.0f);
    const float extrapolated = 1.0f / result[i];
    const float interpolated = 1.0f / (static_cast<float>(factor_) * result[i]);
    result[i] = interpolated * (1.0f - kept) + extrapolated * kept;
  }
  return result;
}

std::vector<float> HfRope::llama3() const {
  const auto original = static_cast<float>(original_positions_);
  const auto factor = static_cast<float>(factor_);
  const auto low = static_cast<float>(low_factor_);
  const double longest = static_cast<double>(original_positions_) / low_factor_;
  const double shortest = static_cast<double>(original_positions_) / high_factor_;
  std::vector<float> result = rope_frequencies(theta_, dim_ / 2);
  for (float& f : result) {
    const float wavelength = static_cast<float>(2 * std::numbers::pi) / f;
    const float smooth = (original / wavelength - low) / static_cast<float>(high_factor_ - low_factor_);
    if (wavelength > static_cast<float>(longest))
      f = f / factor;
    else if (!(wavelength < static_cast<float>(shortest)))
      f = (1.0f - smooth) * f / factor + smooth * f;
  }
  return result;
}

HfRotation HfRope::at(int64_t length) const {
  HfRotation rotation{.theta = theta_, .frequencies = {}, .factor = attention_factor_, .dim = dim_};
  switch (scaling_) {
    case Scaling::kNone: break;
    case Scaling::kLinear: {
      std::vector<float> plain = rope_frequencies(theta_, dim_ / 2);
      for (float& f : plain) f = f / static_cast<float>(factor_);
      rotation.frequencies = widened(plain);
      break;
    }
    case Scaling::kDynamic: {
      if (length <= max_positions_) break;
      const float grown =
          static_cast<float>(factor_) * static_cast<float>(length) / static_cast<float>(max_positions_) -
          static_cast<float>(factor_ - 1);
      const double power = static_cast<double>(dim_) / static_cast<double>(dim_ - 2);
      const auto raised = static_cast<float>(portable_exp(portable_log(static_cast<double>(grown)) * power));
      rotation.theta = static_cast<double>(static_cast<float>(theta_) * raised);
      break;
    }
    case Scaling::kYarn: rotation.frequencies = widened(yarn()); break;
    case Scaling::kLlama3: rotation.frequencies = widened(llama3()); break;
    case Scaling::kLongrope: {
      const std::vector<double>& factors = length > original_positions_ ? long_factors_ : short_factors_;
      std::vector<float> result = rope_wavelengths(theta_, dim_ / 2);
      for (size_t i = 0; i < result.size(); ++i)
        result[i] = 1.0f / (static_cast<float>(factors[i]) * result[i]);
      rotation.frequencies = widened(result);
      break;
    }
  }
  return rotation;
}

int64_t HfRope::same_up_to(int64_t length) const {
  if (scaling_ == Scaling::kDynamic) return std::max(length, max_positions_);
  if (scaling_ == Scaling::kLongrope && length <= original_positions_) return original_positions_;
  return INT64_MAX;
}

}  // namespace lockstep

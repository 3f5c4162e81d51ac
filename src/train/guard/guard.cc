#include "train/guard/guard.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/number_text.h"

namespace lockstep {
namespace {

using Action = Decision::Action;

std::string plural(int64_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

// A window that a checkpoint holds. Values that are not finite would make every later median meaningless.
std::deque<double> window_of(const nlohmann::json& state, const char* name) {
  auto values = state.at(name).get<std::deque<double>>();
  if (!std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); }))
    throw UserError("guard state: {} holds a value that is not finite", name);
  return values;
}

}  // namespace

std::string_view name_of(Trouble trouble) {
  switch (trouble) {
    case Trouble::kNone: return "none";
    case Trouble::kNothingCounted: return "nothing_counted";
    case Trouble::kNonFiniteLoss: return "non_finite_loss";
    case Trouble::kNonFiniteGradient: return "non_finite_gradient";
    case Trouble::kSpikeGradient: return "spike_gradient";
    case Trouble::kSpikeLoss: break;
  }
  return "spike_loss";
}

std::string_view name_of(Decision::Action action) {
  switch (action) {
    case Action::kApply: return "apply";
    case Action::kSkip: return "skip";
    case Action::kRewind: return "rewind";
    case Action::kStop: break;
  }
  return "stop";
}

void RunningMedian::push(double value) {
  values_.push_back(value);
  if (static_cast<int64_t>(values_.size()) > capacity_) values_.pop_front();
}

double RunningMedian::median() const {
  LOCKSTEP_CHECK(!values_.empty(), "a median of nothing");
  std::vector<double> sorted(values_.begin(), values_.end());
  const auto middle = sorted.begin() + static_cast<int64_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

void RunningMedian::set_values(std::deque<double> values) {
  values_ = std::move(values);
  while (static_cast<int64_t>(values_.size()) > capacity_) values_.pop_front();
}

Guard::Guard(const GuardSettings& settings)
    : settings_(settings), losses_(settings.spike_window), grad_norms_(settings.spike_window) {
  LOCKSTEP_CHECK(settings.max_skips >= 0 && settings.spike_window >= 2 && settings.spike_factor >= 0,
                 "max_skips {}, spike_window {}, spike_factor {}", settings.max_skips, settings.spike_window,
                 settings.spike_factor);
  LOCKSTEP_CHECK(settings.lr_cut > 0 && settings.lr_cut <= 1, "lr_cut {}", settings.lr_cut);
}

// Nothing counted comes first: the norm of such a step is 0/0, which is not the gradient's fault. A gradient
// that spikes is named before the loss, since it usually comes a step earlier (OLMo 2, arXiv 2501.00656).
Trouble Guard::find_trouble(const StepNumbers& numbers) const {
  if (numbers.count == 0) return Trouble::kNothingCounted;
  if (!std::isfinite(numbers.loss)) return Trouble::kNonFiniteLoss;
  if (!std::isfinite(numbers.grad_norm)) return Trouble::kNonFiniteGradient;
  const auto spikes = [&](const RunningMedian& window, double value) {
    if (settings_.spike_factor == 0 || !window.ready()) return false;
    const double median = window.median();
    return median > 0 && value > settings_.spike_factor * median;
  };
  if (spikes(grad_norms_, numbers.grad_norm)) return Trouble::kSpikeGradient;
  if (spikes(losses_, numbers.loss)) return Trouble::kSpikeLoss;
  return Trouble::kNone;
}

Decision Guard::decide(const StepNumbers& numbers) {
  const Trouble trouble = find_trouble(numbers);
  if (trouble != Trouble::kNone) return decide_trouble(numbers, trouble);
  losses_.push(numbers.loss);
  grad_norms_.push(numbers.grad_norm);
  return {};
}

Decision Guard::decide_trouble(const StepNumbers& numbers, Trouble trouble) {
  const auto times = [&](const char* what, double value, const RunningMedian& window) {
    return fmt::format("{} {} is {} times its running median {}", what, short_number(value),
                       short_number(value / window.median()), short_number(window.median()));
  };
  std::string text;
  switch (trouble) {
    case Trouble::kNothingCounted: text += "the loss counts nothing, all labels are masked"; break;
    case Trouble::kNonFiniteLoss: text += fmt::format("the loss is {}", short_number(numbers.loss)); break;
    case Trouble::kNonFiniteGradient:
      text += fmt::format("the gradient norm is {} at a loss of {}", short_number(numbers.grad_norm),
                          short_number(numbers.loss));
      break;
    case Trouble::kSpikeGradient: text += times("the gradient norm", numbers.grad_norm, grad_norms_); break;
    case Trouble::kSpikeLoss: text += times("the loss", numbers.loss, losses_); break;
    case Trouble::kNone: break;
  }

  if (settings_.policy == NonFinitePolicy::kStop) return {Action::kStop, trouble, text + "; stopping"};
  if (skips_ + rewinds_ >= settings_.max_skips) {
    text += fmt::format("; stopping: {} and {} so far, train.guard.max_skips allows {}",
                        plural(skips_, "skip"), plural(rewinds_, "rewind"), settings_.max_skips);
    return {Action::kStop, trouble, text};
  }
  // The same records come again after a rewind: where nothing is counted, a smaller step would not help.
  const bool skip = settings_.policy == NonFinitePolicy::kSkip || trouble == Trouble::kNothingCounted;
  ++(skip ? skips_ : rewinds_);
  const int64_t left = settings_.max_skips - skips_ - rewinds_;
  if (skip) return {Action::kSkip, trouble, fmt::format("{}; skipping the step, {} left", text, left)};
  lr_factor_ *= settings_.lr_cut;
  return {Action::kRewind, trouble,
          fmt::format("{}; rewinding to the last checkpoint, from there the learning rate times {}, {} left",
                      text, short_number(lr_factor_), plural(left, "rewind"))};
}

nlohmann::json Guard::state() const {
  return {{"losses", losses_.values()},
          {"grad_norms", grad_norms_.values()},
          {"skips", skips_},
          {"rewinds", rewinds_},
          {"lr_factor", lr_factor_}};
}

void Guard::restore(const nlohmann::json& state) {
  try {
    skips_ = state.at("skips").get_ref<const int64_t&>();
    rewinds_ = state.at("rewinds").get_ref<const int64_t&>();
    lr_factor_ = state.at("lr_factor").get<double>();
    after_rewind(state);
  } catch (const nlohmann::json::exception& error) {
    throw UserError("guard state: {}", error.what());
  }
  if (skips_ < 0 || rewinds_ < 0 || !(lr_factor_ > 0 && lr_factor_ <= 1))
    throw UserError("guard state: skips {}, rewinds {}, lr_factor {} are not a run's", skips_, rewinds_,
                    lr_factor_);
}

void Guard::after_rewind(const nlohmann::json& restored) {
  try {
    losses_.set_values(window_of(restored, "losses"));
    grad_norms_.set_values(window_of(restored, "grad_norms"));
  } catch (const nlohmann::json::exception& error) {
    throw UserError("guard state: {}", error.what());
  }
}

}  // namespace lockstep

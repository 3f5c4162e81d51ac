#include "run/settle_codec.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "prepare/job_identity.h"
#include "run/resume.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/training_checkpoints.h"
#include "train/step/synthetic.h"

namespace lockstep {
namespace {

constexpr int kLeader = 0;
// A gain below this is within what steps differ by.
constexpr double kWorthwhile = 0.03;
constexpr int kTimedSteps = 3;

double now_ms() {
  return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

GradientCodec codec_named(const std::string* name) {
  if (name == nullptr) return GradientCodec::kNone;
  const auto& names = ChoiceNames<GradientCodec>::names;
  const auto found = std::find(names.begin(), names.end(), *name);
  if (found == names.end())
    throw UserError("a checkpoint with strategy.reduce.compress {}, which this version does not have", *name);
  return static_cast<GradientCodec>(found - names.begin());
}

// Steps of generated data that are left out. The state is this worker's own, without an optimizer's, and gone
// with the trial.
CodecTrial try_codec(const JobParts& parts, Backend& backend, Group& group, GradientCodec codec) {
  TrainOptions options = options_in(MeshGroups(&group), backend, parts.options);
  options.reduce.codec = codec;
  options.optimizer = {.name = "sgd"};
  options.ema = 0;
  options.host.reset();
  TrainStep train(plan_training(parts.model, backend, options), parts.model, backend, options,
                  MeshGroups(&group));
  const auto step = [&] {
    train.accumulate(
        [&](int64_t microbatch) { set_synthetic_inputs(train, parts.model, options.seed, microbatch); }, 1);
  };
  step();
  CodecTrial trial{.codec = codec};
  std::vector<double> times, waits;
  for (int i = 0; i < kTimedSteps; ++i) {
    group.barrier("a trial step");
    const double start = now_ms();
    const double waited = train.comm_seconds();
    step();
    times.push_back(now_ms() - start);
    waits.push_back(1e3 * (train.comm_seconds() - waited));
  }
  std::ranges::nth_element(times, times.begin() + kTimedSteps / 2);
  std::ranges::nth_element(waits, waits.begin() + kTimedSteps / 2);
  trial.step_ms = times[kTimedSteps / 2];
  trial.exposed_ms = waits[kTimedSteps / 2];
  return trial;
}

int64_t leaders(Group& group, int64_t value) {
  group.broadcast(std::as_writable_bytes(std::span(&value, 1)), kLeader, "the compression of gradients");
  return value;
}

CompressionSummary summary_of(const CodecVerdict& verdict, const std::vector<CodecTrial>& trials) {
  CompressionSummary summary;
  summary.codec = name_of(verdict.codec);
  summary.reason = verdict.reason;
  for (const CodecTrial& trial : trials)
    summary.measured.push_back({.name = std::string(name_of(trial.codec)),
                                .exposed_ms = trial.exposed_ms,
                                .saves_ms = trials[0].step_ms - trial.step_ms,
                                .step_ms = trial.step_ms,
                                .note = ""});
  return summary;
}

}  // namespace

bool is_worth_trying(const CodecTrial& uncompressed) {
  return uncompressed.exposed_ms > kWorthwhile * uncompressed.step_ms;
}

CodecVerdict judge(const std::vector<CodecTrial>& trials) {
  const CodecTrial& exact = trials.at(0);
  if (trials.size() == 1)
    return {
        exact.codec,
        fmt::format("auto: {:.3g} of {:.3g} ms a step wait for communication, which compression could save "
                    "at most",
                    exact.exposed_ms, exact.step_ms)};
  // In the order of how much they leave of the gradients: a coarser one must be worth it.
  const CodecTrial* best = &exact;
  for (const CodecTrial& trial : trials)
    if (trial.step_ms < best->step_ms * (1 - kWorthwhile)) best = &trial;
  std::vector<std::string> figures;
  for (const CodecTrial& trial : trials)
    figures.push_back(fmt::format("{} {:.4g} ms", name_of(trial.codec), trial.step_ms));
  return {best->codec, fmt::format("auto: steps of {}", fmt::join(figures, ", "))};
}

std::optional<GradientCodec> saved_codec(const JobSpec& spec) {
  const auto latest = latest_checkpoint(checkpoint_folder(spec));
  if (!latest) return std::nullopt;
  return codec_named(open_checkpoint(latest->path).identity().find("strategy.reduce.compress"));
}

void settle_codec(JobParts& parts, GradientCodec codec) {
  ReduceSpec& reduce = parts.spec.strategy.reduce;
  if (reduce.compress != GradientCodec::kAuto) return;
  reduce.compress = codec;
  parts.options.reduce.codec = codec;
  parts.spec.origins["strategy.reduce.compress"] = {.kind = Origin::Kind::kDerived, .how = "auto"};
  set_codec(parts.identity, reduce);
}

void settle_by_checkpoint(JobParts& parts) {
  if (parts.spec.strategy.reduce.compress != GradientCodec::kAuto) return;
  if (const auto codec = saved_codec(parts.spec)) settle_codec(parts, *codec);
}

std::optional<CompressionSummary> settle_codec(JobParts& parts, Backend& backend, const JoinedWorkers& joined,
                                               bool fresh) {
  const GradientCodec asked = parts.spec.strategy.reduce.compress;
  if (asked == GradientCodec::kNone) return std::nullopt;
  if (asked != GradientCodec::kAuto) {
    CompressionSummary named = summary_of({asked, ""}, {});
    if (has_feedback(asked)) named.warmup = parts.options.reduce.warmup;
    return named;
  }
  Group* const group = joined.all.get();
  std::optional<GradientCodec> saved;
  if (!fresh && (group == nullptr || group->rank() == kLeader)) saved = saved_codec(parts.spec);
  constexpr int64_t kUnsaved = -1;
  int64_t kept = saved ? static_cast<int64_t>(*saved) : kUnsaved;
  if (group != nullptr) kept = leaders(*group, kept);
  CodecVerdict verdict;
  std::vector<CodecTrial> trials;
  if (kept != kUnsaved) {
    verdict = {static_cast<GradientCodec>(kept), "auto: the checkpoint was made with it"};
  } else if (group == nullptr) {
    verdict = {GradientCodec::kNone, "auto: one worker sends nothing"};
  } else {
    trials.push_back(try_codec(parts, backend, *group, GradientCodec::kNone));
    if (leaders(*group, is_worth_trying(trials[0]) ? 1 : 0) != 0)
      for (const GradientCodec codec : {GradientCodec::kBf16, GradientCodec::kInt8})
        trials.push_back(try_codec(parts, backend, *group, codec));
    verdict = judge(trials);
    verdict.codec = static_cast<GradientCodec>(leaders(*group, static_cast<int64_t>(verdict.codec)));
  }
  settle_codec(parts, verdict.codec);
  return summary_of(verdict, trials);
}

}  // namespace lockstep

#include "job/resolve.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "job/not_yet.h"
#include "job/workers.h"

namespace lockstep {
namespace {

std::string either(const std::vector<int64_t>& values) {
  return fmt::format("{}", fmt::join(values, " or "));
}

void resolve_batch(const JobSpec& spec, const JobFacts& facts, ResolvedJob& job) {
  const int64_t global = spec.train.global_batch, micro = spec.train.microbatch;
  if (micro > global)
    throw UserError("{}: train.microbatch {} is larger than global_batch {}; use {} or less",
                    spec.where("train.microbatch"), micro, global, global);
  if (global % micro != 0)
    throw UserError("{}: train.microbatch {} does not divide global_batch {}; use {}",
                    spec.where("train.microbatch"), micro, global, either(nearest_divisors(global, micro)));
  job.microbatches = global / micro;
  job.leaves = spec.strategy.leaves.value_or(default_leaves(job.microbatches, facts.parameters.value_or(0)));
  if (job.microbatches % job.leaves != 0)
    throw UserError("{}: strategy.leaves {} does not divide the {} microbatches of a step ({} / {}); use {}",
                    spec.where("strategy.leaves"), job.leaves, job.microbatches, global, micro,
                    either(nearest_divisors(job.microbatches, job.leaves)));
  // Known only with the model, unless the job says it.
  const bool known = spec.strategy.leaves || facts.parameters;
  const int64_t workers = data_workers(spec);
  const int64_t replica = spec.strategy.pipeline * spec.strategy.tensor;
  const int64_t group = spec.strategy.zero_group.value_or(workers);
  if (workers > 1 && workers % group != 0)
    throw UserError(
        "{}: strategy.zero_group {} does not divide the {} workers into groups of equal size; use {}",
        spec.where("strategy.zero_group"), group, workers, either(nearest_divisors(workers, group)));
  if (known && workers > job.leaves)
    throw UserError(
        "{}: {} {} cannot share the {} leaves that a step is summed in; use at most {} workers, or more "
        "leaves (strategy.leaves, a divisor of the {} microbatches; it changes the bits of the result)",
        spec.where("strategy.workers"), workers, replica > 1 ? "replicas of the model" : "workers",
        job.leaves, job.leaves * replica, job.microbatches);
}

void resolve_steps(const JobSpec& spec, const JobFacts& facts, ResolvedJob& job) {
  job.steps = spec.train.steps;
  if (spec.train.epochs && facts.train_samples) {
    const double steps = std::ceil(*spec.train.epochs * static_cast<double>(*facts.train_samples) /
                                   static_cast<double>(spec.train.global_batch));
    job.steps = std::max<int64_t>(1, static_cast<int64_t>(std::min(steps, 1e15)));
    job.notes.push_back(fmt::format("{} epochs of {} samples are {} steps of {}", *spec.train.epochs,
                                    *facts.train_samples, *job.steps, spec.train.global_batch));
  }
  const auto steps = [&](const std::optional<StepSpan>& span) {
    return span ? steps_of(*span, job.steps, spec.train.global_batch) : std::nullopt;
  };
  job.warmup_steps = steps(spec.train.lr.warmup);
  job.eval_every = steps(spec.train.eval.every);
  job.checkpoint_every = steps(spec.checkpoint.every);
  const ReduceSpec& reduce = spec.strategy.reduce;
  job.compress_warmup_steps = has_feedback(reduce.compress) ? steps(reduce.warmup) : 0;
  if (job.steps && job.compress_warmup_steps && *job.compress_warmup_steps > *job.steps)
    throw UserError(
        "{}: strategy.reduce.warmup is {} steps, but the run has {}; write fewer, for example 20%, or "
        "strategy.reduce.compress none",
        spec.where("strategy.reduce.warmup"), *job.compress_warmup_steps, *job.steps);
  if (job.steps && job.warmup_steps && *job.warmup_steps > *job.steps)
    throw UserError("{}: train.lr.warmup is {} steps, but the run has {}; write fewer, for example 5%",
                    spec.where("train.lr.warmup"), *job.warmup_steps, *job.steps);
}

void resolve_decay(const JobSpec& spec, ResolvedJob& job) {
  const LrSpec& lr = spec.train.lr;
  const bool falls = lr.decay != LrDecay::kConstant && lr.decay != LrDecay::kInverseSqrt;
  if (!falls) {
    if (lr.decay_steps)
      throw UserError(
          "{}: train.lr.decay_steps has no meaning with decay {}; remove it, or write decay: linear",
          spec.where("train.lr.decay_steps"), name_of(lr.decay));
    return;
  }
  if (!job.steps || !job.warmup_steps) return;
  const int64_t room = *job.steps - *job.warmup_steps;
  if (lr.decay_steps)
    job.decay_steps = steps_of(*lr.decay_steps, job.steps, spec.train.global_batch);
  else if (lr.decay == LrDecay::kWsd)
    job.decay_steps = std::min(room, (*job.steps + 9) / 10);
  else
    job.decay_steps = room;
  if (lr.decay == LrDecay::kWsd && *job.decay_steps > room)
    throw UserError(
        "{}: train.lr.decay_steps is {} steps, but {} are left after the warm-up; write fewer, for example "
        "10%",
        spec.where("train.lr.decay_steps"), *job.decay_steps, room);
}

void resolve_lr(const JobSpec& spec, ResolvedJob& job) {
  const LrSpec& lr = spec.train.lr;
  const int64_t base_batch = lr.base_batch.value_or(spec.train.global_batch);
  const double ratio = static_cast<double>(spec.train.global_batch) / static_cast<double>(base_batch);
  switch (lr.scaling) {
    case LrScaling::kNone: job.peak_lr = lr.base; break;
    case LrScaling::kLinear: job.peak_lr = lr.base * ratio; break;
    case LrScaling::kSqrt: job.peak_lr = lr.base * std::sqrt(ratio); break;
  }
  if (lr.min > job.peak_lr)
    throw UserError("{}: train.lr.min {} is above the peak {}; write less", spec.where("train.lr.min"),
                    lr.min, job.peak_lr);
  if (ratio == 1) return;
  if (lr.scaling == LrScaling::kNone)
    job.notes.push_back(
        fmt::format("the batch is {:.4g} times base_batch, but scaling is none: the peak stays {:.4g}", ratio,
                    job.peak_lr));
  else
    job.notes.push_back(fmt::format("peak learning rate {:.4g}: {:.4g} at batch {} scaled {} to {}",
                                    job.peak_lr, lr.base, base_batch, name_of(lr.scaling),
                                    spec.train.global_batch));
}

void check_model(const JobSpec& spec) {
  const auto problem = spec.model.family->check(spec.model);
  if (!problem) return;
  throw UserError("{}: model.{} {} {}", spec.where(fmt::format("model.{}", problem->key)), problem->key,
                  problem->value, problem->problem);
}

bool is_table(DataFormat format) {
  return std::find(kTableFormats.begin(), kTableFormats.end(), format) != kTableFormats.end();
}

std::string example_files(DataFormat format) {
  if (is_table(format)) return fmt::format("\"tx/*.{}\"", name_of(format));
  if (format == DataFormat::kTokens) return "\"corpus/*.bin\"";
  if (format == DataFormat::kImages) return "images/train";
  return format == DataFormat::kTar ? "\"shards/train-*.tar\"" : "texts/";
}

bool goes_with(DataFormat format, Records records) {
  if (is_table(format)) return records != Records::kImages;
  if (format == DataFormat::kText || format == DataFormat::kTokens) return records == Records::kTokens;
  if (format == DataFormat::kImages || format == DataFormat::kTar) return records == Records::kImages;
  return true;
}

// "csv, jsonl or synthetic"
std::string formats_for(Records records) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < ChoiceNames<DataFormat>::names.size(); ++i)
    if (goes_with(static_cast<DataFormat>(i), records)) names.push_back(ChoiceNames<DataFormat>::names[i]);
  const std::string_view last = names.back();
  names.pop_back();
  return names.empty() ? std::string(last) : fmt::format("{} or {}", fmt::join(names, ", "), last);
}

void check_data(const JobSpec& spec) {
  const auto check = [&](const SourceSpec& source, const std::string& path) {
    if (!source.format || *source.format == DataFormat::kSynthetic) return;
    if (source.files.empty())
      throw UserError("{}: {}.files is missing; write for example `files: {}` under {}",
                      spec.where(path + ".format"), path, example_files(*source.format), path);
  };
  check(spec.data.train, "data.train");
  check(spec.data.eval, "data.eval");
  const DataFormat format = *spec.data.train.format;
  const ModelFamily& family = *spec.model.family;
  if (!goes_with(format, family.records))
    throw UserError("{}: data.train.format {} does not go with model.family {}; use {}",
                    spec.where("data.train.format"), name_of(format), family.name,
                    formats_for(family.records));
  const SourceSpec& train = spec.data.train;
  if (family.records == Records::kTokens && is_table(format) && train.text.empty() &&
      train.messages.empty() && train.prompt.empty())
    throw UserError(
        "{}: a {} learns text, and the job does not say which column of the {} holds it; write "
        "data.train.text, "
        "data.train.messages, or data.train.prompt and data.train.response",
        spec.where("data.train.format"), family.name, name_of(format));
}

// The model reads the columns that it was trained on, so what is evaluated on must be read alike.
void check_eval(const JobSpec& spec) {
  const SourceSpec &train = spec.data.train, &eval = spec.data.eval;
  if (!eval.format) return;
  if (*eval.format != *train.format && !(is_table(*eval.format) && is_table(*train.format)))
    throw UserError("{}: data.eval.format {} does not go with data.train.format {}; use {}",
                    spec.where("data.eval.format"), name_of(*eval.format), name_of(*train.format),
                    is_table(*train.format) ? "a table, such as csv or parquet" : name_of(*train.format));
  if (eval.label != train.label)
    throw UserError(
        "{}: data.eval.label is {}, and data.train.label is {}; what is evaluated must be the column that is "
        "trained on: give it one name in all files, and remove data.eval.label",
        spec.where("data.eval.label"), eval.label, train.label);
  const ColumnsSpec &a = train.columns, &b = eval.columns;
  const char* differs = a.numeric != b.numeric           ? "numeric"
                        : a.categorical != b.categorical ? "categorical"
                        : a.ignore != b.ignore           ? "ignore"
                        : a.log1p != b.log1p             ? "log1p"
                        : a.fill != b.fill               ? "fill"
                                                         : nullptr;
  if (differs != nullptr) {
    const std::string key = fmt::format("data.eval.columns.{}", differs);
    throw UserError(
        "{}: {} is not what data.train.columns.{} says; the model's inputs are the columns that it is "
        "trained on: remove it",
        spec.where(key), key, differs);
  }
  if (spec.data.hold_out > 0)
    throw UserError(
        "{}: data.hold_out and data.eval both say what to evaluate on; keep one of them (--set "
        "data.hold_out=0, or --set data.eval=)",
        spec.where("data.hold_out"));
}

void check_guard(const JobSpec& spec) {
  if (spec.train.guard.non_finite == NonFinitePolicy::kRewind && !spec.checkpoint.every)
    throw UserError(
        "{}: train.guard.non_finite rewind needs checkpoints to go back to; write `every: 500` under "
        "checkpoint",
        spec.where("train.guard.non_finite"));
  if (spec.train.guard.non_finite == NonFinitePolicy::kRewind && spec.strategy.reduce.via == ReduceVia::kNone)
    throw UserError(
        "{}: strategy.reduce.via none writes no checkpoint that a rewind could go back to; write "
        "non_finite: stop under train.guard",
        spec.where("strategy.reduce.via"));
  if (spec.train.optimizer.nesterov && spec.train.optimizer.momentum == 0)
    throw UserError("{}: train.optimizer.nesterov needs momentum; write momentum: 0.9",
                    spec.where("train.optimizer.nesterov"));
}

void check_precision(const JobSpec& spec) {
  if (spec.train.stochastic_rounding && !computes_in_bf16(spec.train.precision))
    throw UserError("{}: train.stochastic_rounding needs bf16; write precision: bf16, or remove it",
                    spec.where("train.stochastic_rounding"));
  if (spec.train.precision != Precision::kBf16Pure) return;
  if (spec.train.stochastic_rounding)
    throw UserError(
        "{}: train.stochastic_rounding rounds fp32 weights where they are read, and with precision bf16_pure "
        "there are none; remove it (updates are rounded at random anyway), or write precision: bf16",
        spec.where("train.stochastic_rounding"));
  const OptimizerName name = spec.train.optimizer.name;
  if (name == OptimizerName::kLamb || name == OptimizerName::kAdafactor)
    throw UserError(
        "{}: train.optimizer.name {} cannot update weights that are kept in bf16 alone; use adamw, adam, "
        "lion "
        "or sgd, or write precision: bf16",
        spec.where("train.optimizer.name"), name_of(name));
}

}  // namespace

int64_t default_leaves(int64_t microbatches, int64_t parameters) {
  const int64_t most = parameters < 300'000'000 ? 16 : parameters < 3'000'000'000 ? 8 : 4;
  int64_t leaves = 1;
  while (leaves * 2 <= most && microbatches % (leaves * 2) == 0) leaves *= 2;
  return leaves;
}

std::optional<int64_t> steps_of(const StepSpan& span, std::optional<int64_t> run_steps,
                                int64_t global_batch) {
  switch (span.unit) {
    case StepSpan::Unit::kSteps: return static_cast<int64_t>(span.amount);
    case StepSpan::Unit::kSamples:
      return static_cast<int64_t>(std::ceil(span.amount / static_cast<double>(global_batch)));
    case StepSpan::Unit::kFraction: break;
  }
  if (!run_steps) return std::nullopt;
  // 5 % of 100 must be 5 although 0.05 has no exact form.
  return static_cast<int64_t>(std::ceil(span.amount * static_cast<double>(*run_steps) - 1e-9));
}

ResolvedJob resolve(const JobSpec& spec, const JobFacts& facts) {
  refuse_not_yet(spec);
  check_model(spec);
  check_data(spec);
  check_eval(spec);
  check_guard(spec);
  check_precision(spec);
  ResolvedJob job;
  resolve_batch(spec, facts, job);
  resolve_steps(spec, facts, job);
  resolve_decay(spec, job);
  resolve_lr(spec, job);
  job.early_stop_metric = spec.train.early_stop.metric.value_or(spec.train.eval.metric);
  return job;
}

}  // namespace lockstep

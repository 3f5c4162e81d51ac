#include "job/aliases.h"

#include <algorithm>

#include "job/alias_rules.h"

namespace lockstep {
namespace {

constexpr std::string_view kHf = "Hugging Face";
constexpr std::string_view kDs = "DeepSpeed";
constexpr std::string_view kAxolotl = "Axolotl";
constexpr std::string_view kTune = "torchtune";
constexpr std::string_view kNone;  // no counterpart

std::vector<Alias> make_aliases() {
  return {
      // Batch.
      {"per_device_train_batch_size", "train.microbatch", kHf},
      {"train_micro_batch_size_per_gpu", "train.microbatch", kDs, unless_auto},
      {"micro_batch_size", "train.microbatch", kAxolotl},
      {"gradient_accumulation_steps", kAccumulation, kHf, unless_auto},
      {"batch_size", kNone, kTune, refuse_batch_size},
      {"train_batch_size", "train.global_batch", kDs, unless_auto},
      // Length.
      {"max_steps", "train.steps", kHf, unless_negative},
      {"num_train_epochs", "train.epochs", kHf},
      {"num_epochs", "train.epochs", kAxolotl},
      {"epochs", "train.epochs", kTune},
      // Learning rate.
      {"learning_rate", "train.lr.base", kHf},
      {"lr_scheduler_type", "train.lr.decay", kHf, decay_from_hf},
      {"lr_scheduler", "train.lr.decay", kAxolotl, decay_from_hf},
      {"train.lr.schedule", "train.lr.decay", "Lockstep"},
      {"warmup_steps", "train.lr.warmup", kHf, warmup_from_hf},
      {"warmup_ratio", "train.lr.warmup", kHf, percent_from_ratio},
      {"scheduler.type", "train.lr.decay", kDs, decay_from_deepspeed},
      {"scheduler.params.warmup_num_steps", "train.lr.warmup", kDs, unless_auto},
      {"scheduler.params.warmup_max_lr", "train.lr.base", kDs, unless_auto},
      {"scheduler.params.total_num_steps", "train.steps", kDs, unless_auto},
      {"scheduler.params.warmup_min_lr", kNone, kDs},
      {"scheduler.params.warmup_type", kNone, kDs},
      // Optimizer.
      {"optim", "train.optimizer.name", kHf, optimizer_from_hf},
      {"optimizer.type", "train.optimizer.name", kDs, optimizer_from_deepspeed},
      {"optimizer.params.lr", "train.lr.base", kDs, unless_auto},
      {"optimizer.params.betas", "train.optimizer.betas", kDs, unless_auto},
      {"optimizer.params.eps", "train.optimizer.eps", kDs, unless_auto},
      {"optimizer.params.weight_decay", "train.optimizer.weight_decay", kDs, unless_auto},
      {"optimizer.params.momentum", "train.optimizer.momentum", kDs},
      {"adam_beta1", kBeta1, kHf},
      {"adam_beta2", kBeta2, kHf},
      {"adam_epsilon", "train.optimizer.eps", kHf},
      {"weight_decay", "train.optimizer.weight_decay", kHf},
      {"max_grad_norm", "train.clip_norm", kHf},
      {"gradient_clipping", "train.clip_norm", kDs, unless_auto},
      {"clip_grad_norm", "train.clip_norm", kTune},
      // Precision and memory.
      {"bf16", "train.precision", kHf, precision_from_bf16},
      {"bf16.enabled", "train.precision", kDs, precision_from_bf16},
      {"fp16", kNone, kHf, refuse_fp16},
      {"fp16.enabled", kNone, kDs, refuse_fp16},
      {"fp16.*", kNone, kDs},
      {"tf32", kNone, kHf},
      {"gradient_checkpointing", "train.recompute", kHf, recompute_from_flag},
      {"enable_activation_checkpointing", "train.recompute", kTune, recompute_from_flag},
      {"activation_checkpointing.*", kNone, kDs},
      // Model and data.
      {"model_name_or_path", "model.hf", kHf},
      {"base_model", "model.hf", kAxolotl},
      {"sequence_len", "model.seq", kAxolotl},
      {"cutoff_len", "model.seq", kHf},
      {"max_length", "model.seq", kHf},
      {"train.data_seed", "data.seed", kHf},
      {"data_seed", "data.seed", kHf},
      {"seed", "train.seed", kHf},
      {"full_determinism", kNone, kHf},
      {"dataloader_num_workers", kNone, kHf},
      // Evaluation, checkpoints, output.
      {"eval_steps", "train.eval.every", kHf, warmup_from_hf},
      {"eval_strategy", kNone, kHf},
      {"per_device_eval_batch_size", kNone, kHf},
      {"metric_for_best_model", "train.eval.metric", kHf, metric_from_hf},
      {"load_best_model_at_end", kNone, kHf},
      {"save_steps", "checkpoint.every", kHf, warmup_from_hf},
      {"save_strategy", kNone, kHf},
      {"save_total_limit", "checkpoint.keep", kHf},
      {"output_dir", "output", kHf},
      {"run_name", "name", kHf},
      {"logging_steps", kNone, kHf},
      {"logging_strategy", kNone, kHf},
      {"report_to", kNone, kHf},
      {"steps_per_print", kNone, kDs},
      {"wall_clock_breakdown", kNone, kDs},
      {"tensorboard.*", kNone, kDs},
      {"csv_monitor.*", kNone, kDs},
      {"wandb.*", kNone, kDs},
      {"comms_logger.*", kNone, kDs},
      {"flops_profiler.*", kNone, kDs},
      // Layout.
      {"zero_optimization.stage", "strategy.zero", kDs},
      {"zero_optimization.*", kNone, kDs},
      {"tensor_parallel_size", "strategy.tensor", kAxolotl},
      {"tensor_parallel.autotp_size", "strategy.tensor", kDs},
      {"communication_data_type", kNone, kDs},
      {"prescale_gradients", kNone, kDs},
      {"gradient_predivide_factor", kNone, kDs},
  };
}

bool matches(std::string_view name, std::string_view path) {
  return name.ends_with(".*") ? path.starts_with(name.substr(0, name.size() - 1)) : name == path;
}

}  // namespace

std::span<const Alias> job_aliases() {
  static const std::vector<Alias> table = make_aliases();
  return table;
}

const Alias* find_alias(std::string_view path) {
  const auto find = [](std::string_view name) {
    const auto table = job_aliases();
    const auto found = std::find_if(table.begin(), table.end(),
                                    [&](const Alias& alias) { return matches(alias.name, name); });
    return found == table.end() ? nullptr : &*found;
  };
  const Alias* alias = find(path);
  if (alias == nullptr && path.starts_with("train.")) alias = find(path.substr(6));
  return alias;
}

bool is_alias_section(std::string_view path) {
  if (path.starts_with("train.")) path.remove_prefix(6);
  const std::string prefix = std::string(path) + ".";
  const auto table = job_aliases();
  return std::any_of(table.begin(), table.end(),
                     [&](const Alias& alias) { return alias.name.starts_with(prefix); });
}

}  // namespace lockstep

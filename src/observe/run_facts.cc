#include "observe/run_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/number_text.h"
#include "base/printable.h"
#include "observe/progress_text.h"

namespace lockstep {
namespace {

class Facts {
 public:
  void text(const char* name, const std::string& value, Fact::Kind kind = Fact::Kind::kText) {
    if (!value.empty()) list_.push_back({name, printable(value), kind});
  }
  void whole(const char* name, int64_t value) {
    if (value != 0) text(name, fmt::format("{}", value));
  }
  void amount(const char* name, double value, const std::string& shown) {
    if (value != 0) list_.push_back({name, shown, Fact::Kind::kAmount, value});
  }

  std::vector<Fact> take() { return std::move(list_); }

 private:
  std::vector<Fact> list_;
};

std::string batch_text(const RunSummary& summary) {
  if (summary.global_batch == 0) return "";
  if (summary.microbatches == 0) return fmt::format("{}", summary.global_batch);
  return fmt::format("{} in {} microbatches, {} leaves", summary.global_batch, summary.microbatches,
                     summary.leaves);
}

std::string workers_text(const RunSummary& summary) {
  return summary.workers == 0 ? ""
                              : fmt::format("{} of {} threads", summary.workers, summary.threads_per_worker);
}

void add_result(Facts& facts, const RunSummary& summary) {
  facts.text("status", summary.status);
  facts.text("reason", summary.error);
  facts.text("started", summary.started, Fact::Kind::kUncompared);
  facts.text("ended", summary.ended, Fact::Kind::kUncompared);
  facts.text("warnings", fmt::format("{}", fmt::join(summary.warnings, "; ")), Fact::Kind::kUncompared);
  facts.whole("steps", summary.steps);
  facts.amount("final loss", summary.final_loss, short_number(summary.final_loss, 6));
  const std::optional<EvalRecord>& best = summary.best_eval ? summary.best_eval : summary.final_eval;
  if (!best) return;
  facts.whole("best at step", best->step);
  facts.amount("held-out loss", best->loss, short_number(best->loss, 6));
  const auto score = [&](const char* name, const std::optional<double>& value) {
    if (value && std::isnan(*value)) return facts.text(name, "undefined");
    if (value) facts.amount(name, *value, score_text(*value));
  };
  score("perplexity", best->perplexity);
  score("accuracy", best->accuracy);
  score("auc", best->auc);
  score("pr_auc", best->pr_auc);
  score("f1", best->f1 ? best->f1 : best->best_f1);
  score("macro_f1", best->macro_f1);
  score("log loss", best->log_loss);
  score("mae", best->mae);
  score("rmse", best->rmse);
  score("r2", best->r2);
}

std::string reduction_text(const ReductionSummary& servers) {
  std::string text = fmt::format("{} server{}, {} sums in {} s, {} sent, {} received", servers.servers,
                                 servers.servers == 1 ? "" : "s", servers.sums, short_number(servers.seconds),
                                 bytes_text(servers.bytes_sent), bytes_text(servers.bytes_received));
  if (servers.fallbacks > 0)
    text += fmt::format("; {} left, {} sum{} completed without", servers.servers_left, servers.fallbacks,
                        servers.fallbacks == 1 ? "" : "s");
  return text;
}

std::string async_text(const AsyncSummary& async) {
  std::string text = fmt::format("{} server{}, weights {} updates behind on average, {} at most ({} allowed)",
                                 async.servers, async.servers == 1 ? "" : "s", short_number(async.mean_age),
                                 async.ages.empty() ? 0 : async.ages.size() - 1, async.staleness);
  if (async.replayed) text += "; repeats another run";
  if (!async.lost.empty()) text += fmt::format("; {} workers lost", async.lost.size());
  for (const std::string& one : async.stragglers) text += "; " + one;
  return text;
}

std::string compression_text(const CompressionSummary& compression) {
  if (compression.warmup.value_or(0) == 0) return compression.codec;
  return fmt::format("{} after {} exact steps", compression.codec, *compression.warmup);
}

// The slowest sets the pace of all.
std::string stages_text(const std::vector<PipelineStageTimes>& stages) {
  std::string text;
  for (const PipelineStageTimes& stage : stages)
    text +=
        fmt::format("{}{} + {}", text.empty() ? "" : ", ", short_number(stage.forward_ms),
                    short_number(stage.backward_ms + stage.input_gradients_ms + stage.weight_gradients_ms));
  return text.empty() ? text : text + " ms forward + backward of a microbatch";
}

void add_settings(Facts& facts, const RunSummary& summary) {
  facts.whole("parameters", summary.parameters);
  facts.text("batch", batch_text(summary));
  facts.amount("peak lr", summary.peak_lr, short_number(summary.peak_lr, 6));
  facts.text("workers", workers_text(summary));
  if (summary.device_route) facts.text("devices exchange", *summary.device_route, Fact::Kind::kUncompared);
  if (summary.mesh) facts.text("mesh", *summary.mesh);
  facts.text("stages", stages_text(summary.stages), Fact::Kind::kUncompared);
  if (summary.zero) facts.whole("ZeRO stage", *summary.zero);
  if (summary.zero_group) facts.whole("ZeRO group", *summary.zero_group);
  if (summary.checkpoint_writers)
    facts.text("checkpoints by", *summary.checkpoint_writers, Fact::Kind::kUncompared);
  if (summary.reduction) facts.text("reduction", reduction_text(*summary.reduction), Fact::Kind::kUncompared);
  if (summary.async) facts.text("async", async_text(*summary.async), Fact::Kind::kUncompared);
  if (summary.compression) {
    facts.text("compression", compression_text(*summary.compression));
    facts.text("chosen since", summary.compression->reason, Fact::Kind::kUncompared);
  }
  if (summary.reduce_order != "canonical") facts.text("reduce order", summary.reduce_order);
}

// The longest parts first.
std::string parts_text(std::vector<StartPart> parts) {
  std::ranges::stable_sort(parts, std::ranges::greater(), &StartPart::ms);
  std::string text;
  for (const StartPart& part : parts)
    if (part.ms >= 1) text += fmt::format("{}{} {:.0f} ms", text.empty() ? "" : ", ", part.name, part.ms);
  return text;
}

void add_speed(Facts& facts, const RunSummary& summary) {
  facts.amount("samples/s", summary.samples_per_second, rate_text(summary.samples_per_second));
  facts.amount("tokens/s", summary.tokens_per_second, rate_text(summary.tokens_per_second));
  const auto milliseconds = [&](const char* name, double value) {
    facts.amount(name, value, short_number(value) + " ms");
  };
  milliseconds("step p50", summary.step_time_ms.p50);
  milliseconds("step p95", summary.step_time_ms.p95);
  milliseconds("first step after", 1e3 * summary.time_to_first_step_s);
  facts.text("of these", parts_text(summary.start), Fact::Kind::kUncompared);
  facts.text("beside them", parts_text(summary.beside_start), Fact::Kind::kUncompared);
  const auto share = [&](const char* name, double value) {
    if (value != 0) facts.text(name, fmt::format("{:.1f} %", 100 * value), Fact::Kind::kUncompared);
  };
  share("compute", summary.breakdown.compute);
  share("exposed comm", summary.breakdown.exposed_comm);
  share("input wait", summary.breakdown.input_wait);
  if (summary.input) facts.text("input", summary.input->verdict, Fact::Kind::kUncompared);
  share("optimizer", summary.breakdown.optimizer);
  share("other", summary.breakdown.other);
}

// "87 % busy, 26.3 GiB, 1755 MHz, 481 W, 61 C", with peaks where they say more.
std::string device_text(const DeviceSummary& device) {
  const DeviceUse &mean = device.mean, &peak = device.peak;
  std::vector<std::string> parts;
  if (mean.utilization) parts.push_back(fmt::format("{:.0f} % busy", 100 * *mean.utilization));
  if (peak.memory_bytes)
    parts.push_back(fmt::format("{} at most", bytes_text(static_cast<int64_t>(*peak.memory_bytes))));
  if (mean.sm_mhz) parts.push_back(fmt::format("{:.0f} MHz", *mean.sm_mhz));
  if (mean.power_w) parts.push_back(fmt::format("{:.0f} W (peak {:.0f})", *mean.power_w, *peak.power_w));
  if (peak.temperature_c) parts.push_back(fmt::format("{:.0f} C at most", *peak.temperature_c));
  return fmt::format("{}", fmt::join(parts, ", "));
}

void add_resources(Facts& facts, const RunSummary& summary) {
  const auto bytes = [&](const char* name, int64_t value) {
    facts.amount(name, static_cast<double>(value), bytes_text(value));
  };
  bytes("peak memory", summary.peak_memory_bytes);
  if (summary.device_memory_bytes) bytes("device memory", *summary.device_memory_bytes);
  bytes("planned memory", summary.planned_memory_bytes);
  bytes("network", summary.network_bytes);
  if (summary.device) facts.text("device", device_text(*summary.device), Fact::Kind::kUncompared);
  facts.whole("skipped steps", summary.skipped_steps);
  facts.whole("restarts", summary.restarts);
  facts.text("weights", summary.weights_sha256);
  facts.text("identity", summary.identity_sha256);
}

}  // namespace

std::vector<Fact> run_facts(const RunView& run) {
  Facts facts;
  add_result(facts, run.summary);
  add_settings(facts, run.summary);
  add_speed(facts, run.summary);
  add_resources(facts, run.summary);
  return facts.take();
}

}  // namespace lockstep

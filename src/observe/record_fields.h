// The names of the records' fields in files, in order: the one list behind writing and reading. A visitor is
// called with a name and the member that it names.
#pragma once
#include <concepts>
#include <type_traits>

#include "observe/records.h"

namespace lockstep {

template <typename Record, typename Kind>
concept RecordOf = std::same_as<std::remove_const_t<Record>, Kind>;

template <RecordOf<StepShares> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("compute", record.compute);
  visit("exposed_comm", record.exposed_comm);
  visit("input_wait", record.input_wait);
  visit("optimizer", record.optimizer);
  visit("other", record.other);
}

template <RecordOf<DeviceUse> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("utilization", record.utilization);
  visit("memory_bytes", record.memory_bytes);
  visit("sm_mhz", record.sm_mhz);
  visit("power_w", record.power_w);
  visit("temperature_c", record.temperature_c);
}

template <RecordOf<DeviceSummary> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("samples", record.samples);
  visit("mean", record.mean);
  visit("peak", record.peak);
}

template <RecordOf<StepRecord> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("step", record.step);
  visit("loss", record.loss);
  visit("lr", record.lr);
  visit("grad_norm", record.grad_norm);
  visit("samples", record.samples);
  visit("tokens", record.tokens);
  visit("count", record.count);
  visit("seconds", record.seconds);
  visit("time", record.shares);
  visit("device", record.device);
  visit("action", record.action);
  visit("note", record.note);
}

// The scores that an evaluation may have, by name.
template <RecordOf<EvalRecord> Record, typename Visitor>
void visit_scores(Record& record, Visitor&& visit) {
  visit("perplexity", record.perplexity);
  visit("accuracy", record.accuracy);
  visit("precision", record.precision);
  visit("recall", record.recall);
  visit("f1", record.f1);
  visit("best_f1", record.best_f1);
  visit("best_f1_threshold", record.best_f1_threshold);
  visit("auc", record.auc);
  visit("pr_auc", record.pr_auc);
  visit("macro_f1", record.macro_f1);
  visit("log_loss", record.log_loss);
  visit("mae", record.mae);
  visit("rmse", record.rmse);
  visit("r2", record.r2);
}

template <RecordOf<EvalRecord> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("step", record.step);
  visit("loss", record.loss);
  visit_scores(record, visit);
  visit("samples", record.samples);
  visit("seconds", record.seconds);
  visit("best", record.best);
}

template <RecordOf<StepTimeMs> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("p50", record.p50);
  visit("p95", record.p95);
}

template <RecordOf<InputSummary> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("batches", record.batches);
  visit("readers", record.readers);
  visit("ahead", record.ahead);
  visit("fetched_bytes", record.fetched_bytes);
  visit("blocks", record.blocks);
  visit("decoded", record.decoded);
  visit("memory_peak_bytes", record.memory_peak_bytes);
  visit("memory_limit_bytes", record.memory_limit_bytes);
  visit("wait_fetch_s", record.wait_fetch);
  visit("wait_decode_s", record.wait_decode);
  visit("wait_transform_s", record.wait_transform);
  visit("wait_assemble_s", record.wait_assemble);
  visit("wait_reorder_s", record.wait_reorder);
  visit("wait_consumer_s", record.wait_consumer);
  visit("fetch_s", record.fetch);
  visit("decode_s", record.decode);
  visit("transform_s", record.transform);
  visit("assemble_s", record.assemble);
  visit("verdict", record.verdict);
}

template <RecordOf<ReductionSummary> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("servers", record.servers);
  visit("servers_left", record.servers_left);
  visit("streams", record.streams);
  visit("sums", record.sums);
  visit("bytes_sent", record.bytes_sent);
  visit("bytes_received", record.bytes_received);
  visit("seconds", record.seconds);
  visit("fallbacks", record.fallbacks);
  visit("lost", record.lost);
}

template <RecordOf<AsyncSummary> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("staleness", record.staleness);
  visit("servers", record.servers);
  visit("replayed", record.replayed);
  visit("ages", record.ages);
  visit("mean_age", record.mean_age);
  visit("leases_again", record.leases_again);
  visit("lost", record.lost);
  visit("stragglers", record.stragglers);
  visit("log_bytes", record.log_bytes);
}

template <RecordOf<CommBucket> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("bytes", record.bytes);
  visit("ahead_ms", record.ahead_ms);
  visit("transfer_ms", record.transfer_ms);
  visit("exposed_ms", record.exposed_ms);
}

template <RecordOf<CommOption> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("name", record.name);
  visit("exposed_ms", record.exposed_ms);
  visit("saves_ms", record.saves_ms);
  visit("step_ms", record.step_ms);
  visit("note", record.note);
}

template <RecordOf<CommunicationSummary> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("step_ms", record.step_ms);
  visit("exposed_ms", record.exposed_ms);
  visit("modelled_ms", record.modelled_ms);
  visit("buckets", record.buckets);
  visit("options", record.options);
}

template <RecordOf<CompressionSummary> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("codec", record.codec);
  visit("reason", record.reason);
  visit("measured", record.measured);
  visit("warmup", record.warmup);
}

template <RecordOf<PipelineStageTimes> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("forward_ms", record.forward_ms);
  visit("backward_ms", record.backward_ms);
  visit("input_gradients_ms", record.input_gradients_ms);
  visit("weight_gradients_ms", record.weight_gradients_ms);
}

template <RecordOf<StartPart> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("name", record.name);
  visit("ms", record.ms);
  visit("times", record.times);
}

template <RecordOf<RunSummary> Record, typename Visitor>
void visit_fields(Record& record, Visitor&& visit) {
  visit("status", record.status);
  visit("error", record.error);
  visit("exit_code", record.exit_code);
  visit("name", record.name);
  visit("job_file", record.job_file);
  visit("started", record.started);
  visit("ended", record.ended);
  visit("warnings", record.warnings);
  visit("steps", record.steps);
  visit("final_loss", record.final_loss);
  visit("weights_sha256", record.weights_sha256);
  visit("identity_sha256", record.identity_sha256);
  visit("final_eval", record.final_eval);
  visit("best_eval", record.best_eval);
  visit("parameters", record.parameters);
  visit("global_batch", record.global_batch);
  visit("microbatches", record.microbatches);
  visit("leaves", record.leaves);
  visit("peak_lr", record.peak_lr);
  visit("workers", record.workers);
  visit("threads_per_worker", record.threads_per_worker);
  visit("reduce_order", record.reduce_order);
  visit("bucket_bytes", record.bucket_bytes);
  visit("reduction", record.reduction);
  visit("async", record.async);
  visit("compression", record.compression);
  visit("communication", record.communication);
  visit("device_route", record.device_route);
  visit("mesh", record.mesh);
  visit("stages", record.stages);
  visit("zero", record.zero);
  visit("zero_group", record.zero_group);
  visit("checkpoint_writers", record.checkpoint_writers);
  visit("samples_per_second", record.samples_per_second);
  visit("tokens_per_second", record.tokens_per_second);
  visit("step_time_ms", record.step_time_ms);
  visit("time_to_first_step_s", record.time_to_first_step_s);
  visit("start", record.start);
  visit("beside_start", record.beside_start);
  visit("breakdown", record.breakdown);
  visit("input", record.input);
  visit("device", record.device);
  visit("peak_memory_bytes", record.peak_memory_bytes);
  visit("device_memory_bytes", record.device_memory_bytes);
  visit("planned_memory_bytes", record.planned_memory_bytes);
  visit("network_bytes", record.network_bytes);
  visit("skipped_steps", record.skipped_steps);
  visit("restarts", record.restarts);
}

}  // namespace lockstep

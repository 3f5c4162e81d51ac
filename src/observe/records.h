// What a run tells about itself: one record per step, one per evaluation, one for the whole. Plain values
// that the trainer fills; every writer (metrics.jsonl, TensorBoard, the progress line, summary.json) reads
// the same.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/device_use.h"

namespace lockstep {

// Where the time of a step went. In a StepRecord seconds; in a summary shares that sum to 1.
struct StepShares {
  double compute = 0;
  double exposed_comm = 0;  // communication that nothing hides
  double input_wait = 0;
  double optimizer = 0;
  double other = 0;

  double total() const { return compute + exposed_comm + input_wait + optimizer + other; }
  bool operator==(const StepShares&) const = default;
};

// What became of a step that was computed.
inline constexpr const char* kApplied = "";
inline constexpr const char* kSkipped = "skipped";  // its update was left out
inline constexpr const char* kRewound = "rewound";  // the run went back to a checkpoint before it
inline constexpr const char* kStopped = "stopped";  // the run ended there

struct StepRecord {
  int64_t step = 0;  // steps count from 1
  double loss = 0;   // mean per counted sample or token
  double lr = 0;
  double grad_norm = 0;  // before clipping
  int64_t samples = 0;   // of this step, as are the two below
  int64_t tokens = 0;    // 0 where the family has none
  int64_t count = 0;     // samples or tokens that the loss was divided by
  double seconds = 0;
  StepShares shares;                // in seconds
  std::optional<DeviceUse> device;  // at its last moment that was seen; where a device tells
  std::string action = kApplied;
  std::string note;  // why, where the action says that something happened

  bool operator==(const StepRecord&) const = default;
};

struct EvalRecord {
  int64_t step = 0;  // after this many steps; 0 before the first
  double loss = 0;
  // Those that the model's task has; NaN where the records leave one undefined (the auc of one class), which
  // files have as null.
  std::optional<double> perplexity, accuracy, precision, recall, f1, best_f1, best_f1_threshold, auc;
  std::optional<double> macro_f1, log_loss, pr_auc, mae, rmse, r2;
  int64_t samples = 0;
  double seconds = 0;
  bool best = false;  // the best so far, by the metric that the job watches

  bool operator==(const EvalRecord&) const = default;
};

struct StepTimeMs {
  double p50 = 0, p95 = 0;
  bool operator==(const StepTimeMs&) const = default;
};

// Where the time of the input went: docs/input.md.
struct InputSummary {
  int64_t batches = 0;
  int64_t readers = 0, ahead = 0;         // at most
  int64_t fetched_bytes = 0, blocks = 0;  // read from files
  int64_t decoded = 0;                    // records; more than were used where memory is short
  int64_t memory_peak_bytes = 0, memory_limit_bytes = 0;  // of blocks, batches and what is kept to make them
  // Seconds that steps waited, by cause.
  double wait_fetch = 0, wait_decode = 0, wait_transform = 0, wait_assemble = 0, wait_reorder = 0;
  double wait_consumer = 0;  // seconds that readers waited for steps
  // Seconds of work, over all readers.
  double fetch = 0, decode = 0, transform = 0, assemble = 0;
  std::string verdict;  // what is slow, and what to change

  bool operator==(const InputSummary&) const = default;
};

// What Reduction Servers did, as the first worker saw it: docs/communication.md.
struct ReductionSummary {
  int64_t servers = 0, servers_left = 0;  // at the start and at the end
  int64_t streams = 0;                    // hosts, or workers of one host, that send sums to each
  int64_t sums = 0;                       // that went through them
  int64_t bytes_sent = 0, bytes_received = 0;
  double seconds = 0;             // in those sums
  int64_t fallbacks = 0;          // sums that were completed without a server that was lost
  std::vector<std::string> lost;  // which, and why

  bool operator==(const ReductionSummary&) const = default;
};

// What parameter servers and their workers did: docs/async.md.
struct AsyncSummary {
  int64_t staleness = 0, servers = 0;  // the bound; at the start
  bool replayed = false;               // the run repeats another one
  // Pushes that were applied, by how many versions their weights were behind: from 0 on.
  std::vector<int64_t> ages;
  double mean_age = 0;
  int64_t leases_again = 0;             // that were handed out anew, since their worker was lost
  std::vector<std::string> lost;        // workers, and why
  std::vector<std::string> stragglers;  // workers that take much longer than the others for a lease
  int64_t log_bytes = 0;

  bool operator==(const AsyncSummary&) const = default;
};

// One bucket of gradients in a mean step, milliseconds.
struct CommBucket {
  int64_t bytes = 0;       // of gradients, as they are computed
  double ahead_ms = 0;     // from its hand-over to the end of this worker's own work
  double transfer_ms = 0;  // to its sum, with coding and slower workers
  double exposed_ms = 0;   // that this worker waited for it with nothing else to do

  bool operator==(const CommBucket&) const = default;
};

// What a change would make of a mean step.
struct CommOption {
  std::string name;
  double exposed_ms = 0, saves_ms = 0, step_ms = 0;
  std::string note;  // why it is not worth it, or what it costs

  bool operator==(const CommOption&) const = default;
};

// Where communication lies in the open and what could be done about it, as the first worker saw it:
// docs/communication.md.
struct CommunicationSummary {
  double step_ms = 0, exposed_ms = 0;  // means
  double modelled_ms = 0;              // exposed, by the model that the options are reckoned with
  std::vector<CommBucket> buckets;
  std::vector<CommOption> options;

  bool operator==(const CommunicationSummary&) const = default;
};

// How gradients were compressed.
struct CompressionSummary {
  std::string codec;
  std::string reason;                // of a choice that was made by measuring
  std::vector<CommOption> measured;  // trial steps behind it
  std::optional<int64_t> warmup;     // exact steps before a codec that leaves gradients out

  bool operator==(const CompressionSummary&) const = default;
};

// Mean times of a microbatch in a stage of a pipeline, without waiting for other stages; the second step is
// the first that counts. Gradients are made together or, with zero-bubble, apart.
struct PipelineStageTimes {
  double forward_ms = 0, backward_ms = 0, input_gradients_ms = 0, weight_gradients_ms = 0;

  bool operator==(const PipelineStageTimes&) const = default;
};

// A part of the time from the process's start to the end of its first step.
struct StartPart {
  std::string name;
  double ms = 0;
  int64_t times = 0;  // that it was done

  bool operator==(const StartPart&) const = default;
};

// What the device of the first worker was doing from the first step on.
struct DeviceSummary {
  int64_t samples = 0;  // about one a second
  DeviceUse mean, peak;

  bool operator==(const DeviceSummary&) const = default;
};

struct RunSummary {
  std::string status;  // done, stopped_early, diverged, failed, preempted, interrupted
  std::string error;   // why it ended, unless it is done
  int64_t exit_code = 0;
  std::string name;            // the job's
  std::string job_file;        // empty if the job came from elsewhere
  std::string started, ended;  // UTC, as in 2026-01-31T12:00:00Z
  // What was legal and surely not meant, as it was said before the first step.
  std::vector<std::string> warnings;

  int64_t steps = 0;  // in all, with those before a resume
  double final_loss = 0;
  std::string weights_sha256, identity_sha256;
  std::optional<EvalRecord> final_eval, best_eval;

  int64_t parameters = 0;
  int64_t global_batch = 0, microbatches = 0, leaves = 0;
  double peak_lr = 0;
  int64_t workers = 0, threads_per_worker = 0;
  std::string reduce_order;  // canonical; with any other, the bits depend on the number of workers
  int64_t bucket_bytes = 0;  // in which gradients are reduced; 0 on one worker
  std::optional<ReductionSummary> reduction;          // where there are such servers
  std::optional<AsyncSummary> async;                  // where workers push at their own pace
  std::optional<CompressionSummary> compression;      // where gradients are, or it was tried
  std::optional<CommunicationSummary> communication;  // where gradients are reduced in buckets
  std::optional<std::string> device_route;            // of gradients, where devices have memory of their own
  std::optional<std::string> mesh;                    // where workers split the model
  std::vector<PipelineStageTimes> stages;             // of a pipeline, by its rank
  std::optional<int64_t> zero;                        // ZeRO stage, where workers share out what they hold
  std::optional<int64_t> zero_group;                  // workers that do so among each other, where not all
  std::optional<std::string> checkpoint_writers;      // of several workers, and why not all of them

  // Of this start: steps before a resume are not in these.
  double samples_per_second = 0, tokens_per_second = 0;
  StepTimeMs step_time_ms;
  double time_to_first_step_s = 0;
  // What it went to, one after the other, and what other threads did beside that.
  std::vector<StartPart> start, beside_start;
  StepShares breakdown;               // shares of step time
  std::optional<InputSummary> input;  // of the first worker
  std::optional<DeviceSummary> device;
  int64_t peak_memory_bytes = 0, planned_memory_bytes = 0, network_bytes = 0;
  std::optional<int64_t> device_memory_bytes;  // the most that was allocated on a device with its own memory

  int64_t skipped_steps = 0;
  int64_t restarts = 0;

  bool operator==(const RunSummary&) const = default;
};

}  // namespace lockstep

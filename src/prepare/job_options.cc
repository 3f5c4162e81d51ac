#include "prepare/job_options.h"

#include <algorithm>

#include "base/does_not_fit.h"
#include "job/workers.h"

namespace lockstep {
namespace {

OptimizerSettings optimizer_of(const JobSpec& spec) {
  const OptimizerSpec& from = spec.train.optimizer;
  OptimizerSettings settings;
  settings.name = name_of(from.name);
  settings.beta1 = from.betas[0];
  settings.beta2 = from.betas[1];
  settings.epsilon = from.eps;
  settings.weight_decay = from.weight_decay;
  settings.momentum = from.momentum;
  settings.nesterov = from.nesterov;
  settings.clip_norm = spec.train.clip_norm;
  if (spec.train.moments == MomentType::kBf16) settings.moments = DType::kBF16;
  settings.offloaded = spec.strategy.offload == Offload::kState;
  return settings;
}

}  // namespace

PassOptions job_passes(const JobSpec& spec) {
  PassOptions passes;
  passes.recompute = spec.train.recompute;
  if (computes_in_bf16(spec.train.precision)) passes.compute = DType::kBF16;
  passes.stochastic_rounding = spec.train.stochastic_rounding;
  passes.head_chunks = spec.train.head_chunks;
  return passes;
}

namespace {

DeviceRoute route_of(WorkerTransport transport) {
  switch (transport) {
    case WorkerTransport::kAuto: return DeviceRoute::kAuto;
    case WorkerTransport::kCudaIpc: return DeviceRoute::kDevice;
    case WorkerTransport::kNccl: return DeviceRoute::kMessages;
    default: return DeviceRoute::kHost;
  }
}

}  // namespace

TrainOptions job_train_options(const JobSpec& spec, const ResolvedJob& job) {
  TrainOptions options;
  options.passes = job_passes(spec);
  // Servers hold slices of flat buffers, and know no rows.
  if (trains_async(spec)) options.passes.disabled.emplace_back("row_gradients");
  options.optimizer = optimizer_of(spec);
  options.seed = static_cast<uint64_t>(spec.train.seed);
  options.microbatches = job.microbatches;
  options.leaves = job.leaves;
  options.ema = spec.train.ema;
  options.workers = data_workers(spec);
  options.mesh = job_mesh(spec);
  options.schedule = spec.strategy.schedule;
  options.chunks = spec.strategy.chunks;
  options.tensor_leaves = tensor_leaves(spec);
  options.zero = static_cast<int>(spec.strategy.zero);
  options.zero_group = spec.strategy.zero_group.value_or(0);
  const ReduceSpec& reduce = spec.strategy.reduce;
  options.reduce.order = reduce.order;
  options.reduce.bucket_bytes = reduce.bucket.value_or(0);
  if (reduce.via == ReduceVia::kServer) options.reduce.least_bucket = kLeastServedBucket;
  options.reduce.codec = reduce.compress;
  options.reduce.topk = reduce.topk;
  options.reduce.rank = reduce.rank;
  options.reduce.warmup = job.compress_warmup_steps.value_or(0);
  options.reduce.exchange = reduce.via != ReduceVia::kNone;
  options.reduce.way.route = route_of(spec.strategy.transport);
  options.reduce.way.deadline =
      std::chrono::milliseconds(static_cast<int64_t>(spec.strategy.deadline * 1000));
  return options;
}

GuardSettings job_guard(const JobSpec& spec) {
  const GuardSpec& from = spec.train.guard;
  return {.policy = from.non_finite,
          .max_skips = from.max_skips,
          .spike_factor = from.spike_factor,
          .spike_window = from.spike_window,
          .lr_cut = from.lr_cut};
}

TroubleFacts job_facts(const JobParts& parts) {
  const TrainSpec& train = parts.spec.train;
  TroubleFacts facts;
  facts.microbatches = parts.resolved.microbatches;
  facts.peak_lr = parts.schedule.peak();
  facts.schedule = parts.schedule.settings();
  facts.bf16 = computes_in_bf16(train.precision);
  facts.optimizer = name_of(train.optimizer.name);
  facts.beta2 = train.optimizer.betas[1];
  facts.clip_norm = train.clip_norm;
  return facts;
}

int64_t job_workers(const JobSpec& spec) { return wanted_workers(spec).value_or(1); }

MeshShape job_mesh(const JobSpec& spec) {
  return {.data = static_cast<int>(data_workers(spec)),
          .pipeline = static_cast<int>(spec.strategy.pipeline),
          .tensor = static_cast<int>(spec.strategy.tensor)};
}

DeviceOptions job_device(const JobSpec& spec, const HostShare& host) {
  return {.kind = spec.device,
          .threads = job_threads(spec, host),
          .local_rank = static_cast<int>(host.local_rank),
          .tf32 = spec.train.precision == Precision::kTf32};
}

std::unique_ptr<Backend> make_job_backend(const JobSpec& spec, const HostShare& host) {
  auto backend = make_backend(job_device(spec, host));
  if (spec.train.precision == Precision::kTf32 && !backend->has_tf32())
    throw UserError(
        "{}: train.precision tf32 is arithmetic of NVIDIA GPUs, and this job trains on {}; write precision: "
        "fp32, "
        "or bf16, which rounds more and holds half the bytes",
        spec.where("train.precision"), backend->name());
  if (spec.device != DeviceKind::kAuto || backend->memory() == MemoryKind::kDevice) return backend;
  for (size_t i = 0; i < std::min(kTrainingPools, spec.workerPoolSpecs.size()); ++i) {
    const MachineSpec& machine = spec.workerPoolSpecs[i].machineSpec;
    if (machine.acceleratorCount == 0 || spec.workerPoolSpecs[i].replicaCount == 0) continue;
    throw MissingDevice(
        "{}: workerPoolSpecs[{}] asks for {} {} a machine, and here is none that this program can use; to "
        "train on the processor all the same: --set device=cpu, or device: cpu in the job",
        spec.where(fmt::format("workerPoolSpecs[{}].machineSpec.acceleratorCount", i)), i,
        machine.acceleratorCount, machine.acceleratorType.empty() ? "accelerators" : machine.acceleratorType);
  }
  return backend;
}

int job_threads(const JobSpec& spec, const HostShare& host) {
  return spec.strategy.threads ? static_cast<int>(*spec.strategy.threads) : host.processors;
}

}  // namespace lockstep

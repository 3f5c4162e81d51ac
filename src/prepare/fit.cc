#include "prepare/fit.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/available_memory.h"
#include "prepare/job_options.h"

namespace lockstep {
namespace {

double gib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::string size_text(int64_t bytes) {
  return bytes < (1 << 30) ? fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20))
                           : fmt::format("{:.2f} GiB", gib(bytes));
}

// A change to the job that takes less memory.
struct Change {
  std::string set;  // as --set takes it
  std::string price;
  std::function<void(JobSpec&)> apply;
};

std::vector<Change> recompute_changes(const JobSpec& spec) {
  std::vector<Change> changes;
  for (const Recompute policy : {Recompute::kFused, Recompute::kCheap, Recompute::kBlock})
    if (policy > spec.train.recompute)
      changes.push_back({fmt::format("train.recompute={}", name_of(policy)),
                         policy == Recompute::kFused ? "the same bits" : "the same bits, more time",
                         [policy](JobSpec& job) { job.train.recompute = policy; }});
  return changes;
}

std::vector<Change> zero_changes(const JobSpec& spec) {
  std::vector<Change> changes;
  if (job_workers(spec) == 1) return changes;
  constexpr std::array<const char*, 4> kPrice = {
      "", "the same bits, parameters are gathered after the update",
      "the same bits, gradients are sent once per leaf",
      "the same bits, parameters are gathered twice per microbatch"};
  if (spec.strategy.zero_group)
    changes.push_back({"strategy.zero_group=", "the same bits, parameters are gathered from all workers",
                       [](JobSpec& job) { job.strategy.zero_group.reset(); }});
  for (int64_t stage = spec.strategy.zero + 1; stage <= 3; ++stage)
    changes.push_back({fmt::format("strategy.zero={}", stage), kPrice[static_cast<size_t>(stage)],
                       [stage](JobSpec& job) { job.strategy.zero = stage; }});
  return changes;
}

Change microbatch_change(const JobSpec& spec, int64_t microbatch, int64_t leaves) {
  Change change{fmt::format("train.microbatch={}", microbatch), "more microbatches of fewer samples",
                [microbatch, leaves](JobSpec& job) {
                  job.train.microbatch = microbatch;
                  job.strategy.leaves = std::min(leaves, job.strategy.leaves.value_or(leaves));
                }};
  // More microbatches would have more leaves, and those more partial sums to hold.
  if (!spec.strategy.leaves) change.set += fmt::format(" --set strategy.leaves={}", leaves);
  return change;
}

std::vector<Change> numeric_changes(const JobSpec& spec, int64_t leaves) {
  std::vector<Change> changes;
  if (leaves > 1)
    changes.push_back({"strategy.leaves=1", "another order of sums, for at most one worker",
                       [](JobSpec& job) { job.strategy.leaves = 1; }});
  if (spec.train.head_chunks == 1)
    changes.push_back({"train.head_chunks=8", "another order of sums in the head and its loss",
                       [](JobSpec& job) { job.train.head_chunks = 8; }});
  if (!computes_in_bf16(spec.train.precision))
    changes.push_back({"train.precision=bf16", "rounds activations to bf16",
                       [](JobSpec& job) { job.train.precision = Precision::kBf16; }});
  if (spec.train.precision != Precision::kBf16Pure)
    changes.push_back({"train.precision=bf16_pure", "keeps weights and gradients in bf16 alone",
                       [](JobSpec& job) { job.train.precision = Precision::kBf16Pure; }});
  else if (spec.train.moments == MomentType::kFp32)
    changes.push_back({"train.moments=bf16", "rounds what the optimizer keeps to bf16",
                       [](JobSpec& job) { job.train.moments = MomentType::kBf16; }});
  if (spec.train.ema > 0)
    changes.push_back(
        {"train.ema=0", "evaluates the weights themselves", [](JobSpec& job) { job.train.ema = 0; }});
  for (const OptimizerName name : {OptimizerName::kLion, OptimizerName::kAdafactor})
    if (name != spec.train.optimizer.name)
      changes.push_back({fmt::format("train.optimizer.name={}", name_of(name)),
                         "another optimizer, to be tuned anew",
                         [name](JobSpec& job) { job.train.optimizer.name = name; }});
  return changes;
}

// What a plan is compared with. Checkpoints on their way and the program itself lie in the host's memory.
struct Room {
  int64_t bytes = 0;
  bool on_device = false;
  std::string whose;

  int64_t taken_by(const JobPlan& plan) const {
    return on_device ? plan.memory.bytes() + plan.beside.evaluation : plan.bytes();
  }
};

Room room_for(const JobSpec& spec, Backend& backend, const HostShare& host) {
  if (spec.strategy.memory) return {*spec.strategy.memory, false, "strategy.memory gives it"};
  if (const int64_t free = backend.available_bytes(host.workers); free > 0)
    return {free, true, host.workers > 1 ? "its part of the GPU is" : "the GPU has free"};
  return {host.memory(available_memory_bytes()), false, "this machine has for it"};
}

int64_t planned_bytes(const JobSpec& spec, const InputSizes& inputs, Backend& backend,
                      const std::optional<HostPlace>& host, const Room& room) {
  const Model model = build_job_model(spec, inputs);
  const ResolvedJob job = resolve(spec, {.parameters = parameter_count(model), .train_samples = {}});
  return room.taken_by(plan_job(spec, job, model, inputs, backend, host));
}

// Tries changes one by one and keeps a line for each that takes less.
class Search {
 public:
  Search(const JobSpec& spec, const JobPlan& plan, const Room& room, const InputSizes& inputs,
         Backend& backend)
      : spec_(spec),
        planned_(room.taken_by(plan)),
        host_(plan.host),
        room_(room),
        inputs_(inputs),
        backend_(backend),
        all_(spec) {}

  // A change with which the job does not hold together is left out.
  void attempt(const Change& change) {
    JobSpec changed = spec_;
    change.apply(changed);
    try {
      const int64_t bytes = planned_bytes(changed, inputs_, backend_, host_, room_);
      if (bytes >= planned_) return;
      lines_ += fmt::format("  --set {:<44}{:>12}   {}{}\n", change.set, size_text(bytes), change.price,
                            bytes > room_.bytes ? "; not enough alone" : "");
      fits_ = fits_ || bytes <= room_.bytes;
      // One that does not go with those before it is not among all of them together.
      JobSpec together = all_;
      change.apply(together);
      resolve(together);
      all_ = together;
    } catch (const UserError&) {
    }
  }

  // The largest microbatch that fits, or the smallest that takes less.
  void try_microbatches(int64_t leaves) {
    for (int64_t microbatch = spec_.train.microbatch; microbatch > 1;) {
      microbatch = smaller(microbatch);
      const Change change = microbatch_change(spec_, microbatch, leaves);
      JobSpec changed = spec_;
      change.apply(changed);
      if (microbatch == 1 || fits(changed)) return attempt(change);
    }
  }

  std::string report() {
    if (lines_.empty()) return "nothing that the job file sets takes less; use a smaller model\n";
    std::string text = "what takes less:\n" + lines_;
    if (fits_) return text;
    const int64_t together = planned_bytes(all_, inputs_, backend_, host_, room_);
    return text + fmt::format("  {:<50}{:>12}{}\n", "all of these together", size_text(together),
                              together > room_.bytes ? "   still too much: use a smaller model" : "");
  }

 private:
  int64_t smaller(int64_t microbatch) const {
    int64_t next = microbatch / 2;
    while (next > 1 && spec_.train.global_batch % next != 0) --next;
    return std::max<int64_t>(1, next);
  }
  bool fits(const JobSpec& changed) const {
    try {
      return planned_bytes(changed, inputs_, backend_, host_, room_) <= room_.bytes;
    } catch (const UserError&) {
      return false;
    }
  }

  const JobSpec& spec_;
  int64_t planned_;
  std::optional<HostPlace> host_;
  const Room& room_;
  const InputSizes& inputs_;
  Backend& backend_;
  JobSpec all_;
  std::string lines_;
  bool fits_ = false;
};

}  // namespace

void require_fit(const JobSpec& spec, const ResolvedJob& job, const JobPlan& plan, const InputSizes& inputs,
                 Backend& backend, const HostShare& host) {
  const Room room = room_for(spec, backend, host);
  if (room.taken_by(plan) <= room.bytes || room.bytes == 0) return;
  Search search(spec, plan, room, inputs, backend);
  for (const Change& change : recompute_changes(spec)) search.attempt(change);
  if (room.on_device && spec.strategy.offload == Offload::kNone)
    search.attempt({"strategy.offload=state", "the same bits, the state crosses the bus in every step",
                    [](JobSpec& changed) { changed.strategy.offload = Offload::kState; }});
  for (const Change& change : zero_changes(spec)) search.attempt(change);
  search.try_microbatches(job.leaves);
  for (const Change& change : numeric_changes(spec, job.leaves)) search.attempt(change);
  throw DoesNotFit("{}: a worker would take {} and {} {}\n{}{}", spec.where("strategy.memory"),
                   size_text(room.taken_by(plan)), room.whose, size_text(room.bytes), plan.table(),
                   search.report());
}

}  // namespace lockstep

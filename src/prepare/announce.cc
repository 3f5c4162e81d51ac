#include "prepare/announce.h"

#include <fmt/format.h>

#include <array>

#include "prepare/column_lines.h"
#include "prepare/job_options.h"
#include "prepare/trained_params.h"
#include "prepare/warnings.h"

namespace lockstep {
namespace {

std::string data_line(const Data& data) {
  std::string line = fmt::format("{} training records", data.train->size());
  if (data.eval) line += fmt::format(", {} held out", data.eval->size());
  return line;
}

std::string reduce_line(const ReduceSpec& reduce, int64_t warmup, const Buckets& buckets) {
  if (reduce.via == ReduceVia::kNone)
    return "are not exchanged: every worker trains alone, to measure what communication costs";
  std::string line = fmt::format("reduced in buckets: {}", buckets.text());
  if (reduce.via == ReduceVia::kServer)
    line += fmt::format(", by {} Reduction Server{}", *reduce.servers, *reduce.servers == 1 ? "" : "s");
  if (reduce.compress != GradientCodec::kNone) line += fmt::format(", as {}", name_of(reduce.compress));
  if (warmup > 0) line += fmt::format(" after {} exact steps", warmup);
  if (reduce.order == SumOrder::kFast)
    line += "; in the fast order, so that the bits depend on the number of workers";
  return line;
}

std::string state_line(const Ownership& ownership, int64_t workers) {
  constexpr std::array<const char*, 4> kSplit = {"", " is", " and the sums of gradients are",
                                                 ", the sums of gradients and the parameters are"};
  const std::string of_groups = ownership.workers() == workers
                                    ? ""
                                    : fmt::format(" of each of {} groups", workers / ownership.workers());
  return fmt::format("ZeRO-{}: the optimizer's state{} split between the {} workers{}", ownership.stage(),
                     kSplit[static_cast<size_t>(ownership.stage())], ownership.workers(), of_groups);
}

std::string course_line(const Schedule& schedule, LrDecay decay, int64_t steps) {
  return fmt::format("{} steps, {} of them warm-up, then {}", steps, schedule.warmup_steps(), name_of(decay));
}

}  // namespace

std::vector<std::string> announcement(const JobParts& parts, const Group* group, const Buckets& buckets,
                                      const std::string& device_route, const std::string& architecture,
                                      int64_t planned_bytes) {
  const JobSpec& spec = parts.spec;
  const ResolvedJob& job = parts.resolved;
  std::vector<std::string> lines;
  const auto line = [&](std::string_view name, const std::string& text) {
    lines.push_back(fmt::format("{:<10} {}", name, text));
  };
  line("job", fmt::format("{} ({})", spec.name, spec.file));
  line("model", fmt::format("{}, {} parameters, {}", spec.model.family->name, parameter_count(parts.model),
                            name_of(spec.train.precision)));
  if (const std::string trained = trained_text(parts.model); !trained.empty()) line("trained", trained);
  if (parts.pretrained) line("weights", parts.pretrained->text());
  line("data", data_line(parts.data));
  for (const std::string& note : parts.data.notes) line("tokens", note);
  if (parts.data.report) line("columns", column_line(*parts.data.report));
  if (!parts.data.label_decision.empty()) line("label", parts.data.label_decision);
  line("step", fmt::format("{} samples = {} microbatches of {}, summed in {} leaves", spec.train.global_batch,
                           job.microbatches, spec.train.microbatch, job.leaves));
  line("course", course_line(parts.schedule, spec.train.lr.decay, parts.steps()));
  line("peak lr", parts.schedule.reason());
  if (parts.initial) line("start", parts.initial->text());
  line("machine", fmt::format("{}, {} threads, {:.1f} MiB planned", architecture,
                              job_threads(spec, parts.host), static_cast<double>(planned_bytes) / (1 << 20)));
  if (const int64_t leaves = parts.options.tensor_leaves; leaves > 1)
    line("tensor", fmt::format("{} leaves, added up by a tree in every layer", leaves));
  if (group != nullptr) {
    const MeshShape mesh = job_mesh(spec);
    if (mesh.splits_model())
      line("workers", fmt::format("{}: {}", mesh.ranks(), mesh.text()));
    else
      line("workers", group->split().text());
    line("gradients", reduce_line(spec.strategy.reduce, parts.options.reduce.warmup, buckets));
    if (!device_route.empty()) line("devices", fmt::format("exchange through {}", device_route));
    if (const Ownership ownership = parts.options.ownership(); ownership.is_split())
      line("state", state_line(ownership, mesh.data));
  }
  line("identity", parts.identity.sha256());
  line("output", spec.output);
  for (const std::string& warning : job_warnings(parts)) line("warning", warning);
  return lines;
}

}  // namespace lockstep

// strategy.reduce.compress: auto, settled before the first step.
//
// A choice that is made by measuring must not make bits that nobody can repeat. So it is made by trial steps
// that leave nothing behind, before training begins: the run is then, bit for bit and by its identity, the
// one that names the chosen codec. A run that goes on keeps what its checkpoint was made with.
#pragma once
#include "observe/records.h"
#include "prepare/job_parts.h"
#include "run/workers.h"

namespace lockstep {

// What the job's latest checkpoint was made with; nothing: there is none.
std::optional<GradientCodec> saved_codec(const JobSpec& spec);
// Makes the job one with this codec, where it says auto.
void settle_codec(JobParts& parts, GradientCodec codec);
// Of a job that says auto and has a checkpoint.
void settle_by_checkpoint(JobParts& parts);

// On all workers together. `fresh`: whatever the output folder holds. Returns what the summary says; nothing
// where gradients are not compressed and nobody asked.
std::optional<CompressionSummary> settle_codec(JobParts& parts, Backend& backend, const JoinedWorkers& joined,
                                               bool fresh);

// From the figures of trial steps, uncompressed first: what to train with, and why.
struct CodecTrial {
  GradientCodec codec = GradientCodec::kNone;
  double step_ms = 0;
  double exposed_ms = 0;
};
struct CodecVerdict {
  GradientCodec codec = GradientCodec::kNone;
  std::string reason;
};
// Whether others are worth trying at all.
bool is_worth_trying(const CodecTrial& uncompressed);
CodecVerdict judge(const std::vector<CodecTrial>& trials);

}  // namespace lockstep

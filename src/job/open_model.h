// The files that a job's model comes from, opened: a Hugging Face folder (model.hf) and a PEFT adapter
// (train.lora.from). What they say becomes part of the job, as if it had been written there.
#pragma once
#include <optional>
#include <string>

#include "job/spec.h"
#include "model/hf/base_folder.h"
#include "model/lora.h"

namespace lockstep {

// Fills model.source and model.family, sizes that the job leaves open, and what an adapter says about LoRA.
// Reads no weights. Throws UserError that begins with the line of the job.
void open_model(JobSpec& spec);
// The same for a job that is kept with a checkpoint: the checkpoint itself is the folder, and nothing else is
// read; but for the weights that it was trained beside, where it does not hold those. Then says which they
// must be.
std::optional<BaseFolder> open_kept_model(JobSpec& spec, const std::string& checkpoint);

bool uses_lora(const JobSpec& spec);
LoraSettings lora_settings(const JobSpec& spec);

}  // namespace lockstep

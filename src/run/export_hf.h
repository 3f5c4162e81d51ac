// A trained run as folders that Hugging Face's tools open: a model for transformers, an adapter for PEFT.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "prepare/trained_model.h"
#include "run/export_model.h"

namespace lockstep {

struct HfExportOptions {
  std::string out;                      // the folder: new, or empty
  bool merge = false;                   // add the matrices of LoRA to the weights they belong to
  std::optional<DType> dtype = {};      // of the weights; unset: the widest of the checkpoint's
  int64_t shard_bytes = 5'000'000'000;  // a file holds no more, unless one tensor alone does
};

// config.json with its original keys, weights in as many files as they need, and the files that lay beside
// the original model. The folder appears complete or not at all. Throws UserError for a run that does not
// come from such a folder.
ExportReport export_hf(const TrainedModel& model, const HfExportOptions& options);
// adapter_config.json and adapter_model.safetensors. Throws UserError for a run without LoRA.
ExportReport export_peft(const TrainedModel& model, const HfExportOptions& options);

}  // namespace lockstep

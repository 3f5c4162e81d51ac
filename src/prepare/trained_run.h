// A run that was trained before, to be used: one of its checkpoints, the job that made it, and the constants
// by which it reads records.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/transform/label_encoding.h"
#include "job/spec.h"
#include "model/hf/base_folder.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace lockstep {

// The folder of a checkpoint: the one that is named, or the newest complete one of a run. Throws UserError
// where there is none.
std::string find_checkpoint(const std::string& run_or_checkpoint);

struct TrainedRun {
  std::string path;  // of the checkpoint
  JobSpec spec;
  std::string constants;                     // `encoding.txt`; empty: records need none
  std::optional<LabelEncoding> labels = {};  // of a table: what they mean, by the constants
  std::unique_ptr<const CheckpointReader> checkpoint;
  // Where the checkpoint holds only what was trained: the rest, in spec.model.source, is as it was then.
  std::optional<BaseFolder> base = {};
  std::optional<int64_t> best_step;  // of the run, where another checkpoint is its best

  int64_t step() const { return checkpoint->step(); }
  // Null: the checkpoint holds all.
  const HfSource* base_weights() const { return base ? spec.model.source.get() : nullptr; }
};

// `overrides` change the job that is kept with the checkpoint, as --set does. Throws UserError for what is
// damaged or no run.
TrainedRun open_trained_run(const std::string& run_or_checkpoint,
                            std::span<const std::string> overrides = {});

}  // namespace lockstep

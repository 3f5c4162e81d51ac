// A trained model, found by its run's folder or by one of its checkpoints: the job that made it, and its
// weights, every byte compared with the checkpoint's manifest. The data it was trained on is not needed.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "job/spec.h"
#include "model/family.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace lockstep {

class TrainedModel {
 public:
  // Throws UserError that names the file that is missing or damaged.
  explicit TrainedModel(std::string checkpoint);

  const std::string& path() const { return reader_->path(); }  // of the checkpoint
  const JobSpec& spec() const { return spec_; }
  int64_t step() const { return reader_->step(); }
  const Identity& identity() const { return reader_->identity(); }
  // How the columns of a table become inputs (encoding.txt); empty for other records.
  const std::string& encoding() const { return encoding_; }
  // What the job had left to its data, found in the weights. Rows of tokens are one document each, and texts
  // say which of their positions are filled.
  const InputSizes& inputs() const { return inputs_; }

  // The graph that evaluates so many samples.
  Model evaluation(int64_t batch) const;
  // What an evaluation computes with: parameters (their moving averages, where the job keeps those), then
  // running statistics.
  const std::vector<TensorSpec>& weights() const { return weights_; }
  bool averaged() const { return averaged_; }
  // Bytes of one of them from `first` on, as many as `into` has.
  void read(const TensorSpec& weight, int64_t first, std::span<std::byte> into) const;

 private:
  std::shared_ptr<const CheckpointReader> reader_;
  JobSpec spec_;
  std::string encoding_;
  InputSizes inputs_;
  bool averaged_ = false;
  std::vector<TensorSpec> weights_;
};

// `path` is a checkpoint's folder, or that of a run, whose newest complete checkpoint is taken.
TrainedModel open_trained(const std::string& path);

}  // namespace lockstep

// The model of a trained run (prepare/trained_run.h): the graph that evaluates it, and its weights, every
// byte compared with the checkpoint's manifest. The data it was trained on is not needed.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "job/spec.h"
#include "model/family.h"
#include "prepare/trained_run.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace lockstep {

class TrainedModel {
 public:
  // Throws UserError that names the file that is missing or damaged.
  explicit TrainedModel(TrainedRun run);

  const std::string& path() const { return run_.path; }  // of the checkpoint
  const JobSpec& spec() const { return run_.spec; }
  int64_t step() const { return run_.step(); }
  const Identity& identity() const { return run_.checkpoint->identity(); }
  // How the columns of a table become inputs (encoding.txt); empty for other records.
  const std::string& encoding() const { return run_.constants; }
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
  // Where it lies beside the checkpoint; null: in it.
  const StoredTensor* in_base(const TensorSpec& weight) const;

  TrainedRun run_;
  InputSizes inputs_;
  bool averaged_ = false;
  std::vector<TensorSpec> weights_;
};

}  // namespace lockstep

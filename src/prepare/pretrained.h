// The weights that a job's files give its model: those of a Hugging Face folder (model.hf), and of a PEFT
// adapter on top (train.lora.from). What is taken, by its hash, is part of the run's identity.
//
// Only the leader reads weights; the others are given them. So the hashes stand in the leader's identity
// alone, and shared_part() is what all workers compare.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/spec.h"
#include "model/hf/weight_match.h"
#include "model/model.h"
#include "train/checkpoint/identity.h"
#include "train/step/train_step.h"

namespace lockstep {

class ThreadPool;

inline constexpr const char* kWeightsField = "model.weights";  // of an identity

class PretrainedWeights {
 public:
  // Nothing where the job draws its weights. Reads names and shapes only. Throws UserError for an adapter
  // that does not fit.
  static std::optional<PretrainedWeights> of_job(const JobSpec& spec, const Model& model);

  // "201 tensors of ./llama; drawn: score.weight".
  std::string text() const;
  // Says in the model that these need not be drawn.
  void mark_given(Model& model) const;
  // Reads every byte that is taken, once, on so many threads. Adds their hash to an identity, and puts them
  // into a step that has made none yet, converted to the types of its state; either may be null. Moving
  // averages begin equal to the parameters.
  void read(int threads, Identity* identity, TrainStep* into) const;

 private:
  struct Part {
    const char* field;  // of the identity
    std::shared_ptr<const HfWeightFiles> files;
    std::vector<WeightMatch::Taken> taken;
  };
  static std::string read(const Part& part, ThreadPool& pool, bool hashes, TrainStep* into);

  std::vector<Part> parts_;
  std::vector<std::string> drawn_, unused_;
};

// Without what only the leader knows.
Identity shared_part(const Identity& identity);

}  // namespace lockstep

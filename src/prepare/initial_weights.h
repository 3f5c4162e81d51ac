// train.init_from: the weights of another run that a new one starts from.
//
// Parameters and running statistics are taken as they are, by name; the optimizer begins anew. What is taken
// and from which bits is part of the new run's identity.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "job/spec.h"
#include "model/model.h"
#include "train/checkpoint/identity.h"
#include "train/step/train_step.h"

namespace lockstep {

struct InitialWeights {
  std::string checkpoint;          // its folder
  std::string sha256;              // of the file that holds the weights
  std::vector<std::string> taken;  // names, in the order of the model
  std::vector<std::string> drawn;  // the model's others

  // "12 tensors of runs/base/checkpoint-500; drawn: top.2.weight, top.2.bias".
  std::string text() const;
};

// Nothing where the job starts from drawn weights. Reads names and shapes only. Throws UserError that lists
// all that does not fit, and for a pattern that fits no parameter.
std::optional<InitialWeights> job_initial_weights(const JobSpec& spec, const Model& model);
void add_to_identity(const InitialWeights& weights, Identity& identity);

// Puts them into a step that has made none yet, after every byte was compared with the checkpoint's manifest.
// Moving averages begin equal to the parameters.
void start_from(const InitialWeights& weights, TrainStep& train);

}  // namespace lockstep

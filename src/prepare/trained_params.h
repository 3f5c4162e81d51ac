// Which parameters of a job's model are trained: all, or those that train.freeze, train.train_only and
// train.lora leave.
#pragma once
#include "job/spec.h"
#include "model/model.h"

namespace lockstep {

// The model as its family builds it, with the matrices of LoRA and with what is frozen. Throws UserError for
// a pattern or module that fits nothing, and where nothing is left to train.
Model with_trained_params(const JobSpec& spec, Model model, bool training);

// "1.2M of 1.1B parameters trained"; empty where all are.
std::string trained_text(const Model& model);

// Whether a name fits one of the patterns, in which * and ? stand for anything.
bool fits_pattern(const std::vector<std::string>& patterns, const std::string& name);

}  // namespace lockstep

// Which tensor of a folder is which parameter of a model: by name, with the spellings that transformers
// accepts (without the base model's prefix, LayerNorm.gamma), tied tensors once, buffers passed over.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "model/hf/family.h"
#include "model/hf/weight_files.h"

namespace lockstep {

struct WeightMatch {
  struct Taken {
    std::string name;  // of the parameter
    const StoredTensor* from = nullptr;
  };
  std::vector<Taken> taken = {};         // in the order of `wanted`
  std::vector<std::string> drawn = {};   // parameters that the folder does not have: those of a new head
  std::vector<std::string> unused = {};  // tensors that the model has no use for: those of another head
  bool untied = false;  // config.json ties two tensors that differ; nothing else is filled then
};

// `draws_head`: parameters of the head (and a pooler) that are not there, or there for another number of
// classes, are drawn. Throws UserError that lists all that does not fit: a tensor that is missing, of another
// shape or element type, and one of the model's body that this model does not have.
WeightMatch match_weights(const HfWeightFiles& files, const HfModel& model,
                          std::span<const TensorSpec> wanted, bool draws_head);

}  // namespace lockstep

// The weights of a trained run as plain ones of its base model: as they are, or with the matrices of LoRA
// added. The sum W + scale * B A is made in f32 and rounded once, by whoever stores it.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/lora.h"
#include "prepare/trained_model.h"

namespace lockstep {

// One of them, opened. Threads may read parts of it at once.
class MergedTensor {
 public:
  // In the type that it is stored in, all of it as the checkpoint has it: nothing is added.
  bool is_plain() const { return !adapted_; }
  DType stored() const { return tensor_.dtype; }
  // Bytes from `first` on; of one that is plain.
  void read_stored(int64_t first, std::span<std::byte> into) const;
  // Elements [first, first + into.size()).
  void read(int64_t first, std::span<float> into) const;

 private:
  friend class MergedWeights;
  struct Adapted {
    LinearLayer layer;
    std::vector<float> a, b;  // [rank, in], [out, rank]
    int64_t rank = 0;
    float scale = 1;
  };
  MergedTensor(const TrainedModel& model, TensorSpec tensor) : model_(&model), tensor_(std::move(tensor)) {}

  const TrainedModel* model_;
  TensorSpec tensor_;
  std::optional<Adapted> adapted_;
};

class MergedWeights {
 public:
  // Throws UserError where the run has matrices of LoRA and `merge` is not asked for.
  MergedWeights(const TrainedModel& model, bool merge);

  // Those of the base model, in the order of its graph, in the types of the checkpoint.
  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  // The widest of these types: what all of them are exported in by default.
  DType widest() const;
  // Reads the matrices that belong to it.
  MergedTensor open(const std::string& name) const;

 private:
  const TrainedModel& model_;
  float scale_ = 1;
  int64_t rank_ = 0;
  std::vector<TensorSpec> tensors_;
  std::map<std::string, LinearLayer> adapted_;  // by the name of the weight
};

// One tensor of a trained run, all of it, as f32.
std::vector<float> read_whole(const TrainedModel& model, const std::string& name);

}  // namespace lockstep

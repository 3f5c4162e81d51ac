// The weights of a trained run as plain ones of its base model: as they are, or with the matrices of LoRA
// added. The sum W + scale * B A is made in f32 and rounded once, by whoever stores it.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "model/lora.h"
#include "prepare/trained_model.h"

namespace lockstep {

class MergedWeights {
 public:
  // Throws UserError where the run has matrices of LoRA and `merge` is not asked for.
  MergedWeights(const TrainedModel& model, bool merge);

  // Those of the base model, in the order of its graph, in the types of the checkpoint.
  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  // The widest of these types: what all of them are exported in by default.
  DType widest() const;
  // Elements [first, first + into.size()) of one.
  void read(const TensorSpec& tensor, int64_t first, std::span<float> into) const;

 private:
  struct Matrices {
    LinearLayer layer;
    std::vector<float> a, b;  // [rank, in], [out, rank]
  };
  const Matrices& matrices_of(const LinearLayer& layer) const;
  void add_product(const Matrices& matrices, int64_t first, std::span<float> into) const;
  void add_rows(const Matrices& matrices, int64_t first, std::span<float> into) const;

  const TrainedModel& model_;
  mutable ThreadPool pool_;
  double scale_ = 1;
  int64_t rank_ = 0;
  std::vector<TensorSpec> tensors_;
  std::map<std::string, LinearLayer> adapted_;  // by the name of the weight
  mutable std::optional<Matrices> last_;        // of the layer that was read last
};

// One tensor of a trained run, all of it, as f32.
std::vector<float> read_whole(const TrainedModel& model, const std::string& name);

}  // namespace lockstep

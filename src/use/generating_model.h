// GeneratingModel: a causal language model that is there to be generated with: the graphs of its family, and
// its weights in memory.
//
// It comes from a Hugging Face folder or from a run of this program, whose families gpt and llama are gpt2
// and llama under other keys. Opening reads sizes and headers; weights are read by load(), once the caller
// knows that they fit.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "model/hf/family.h"
#include "passes/pipeline.h"
#include "safetensors/header.h"

namespace lockstep {

class GeneratingModel {
 public:
  // The type that products are computed in, and weights and cache kept in. Unset: bf16 where the weights are
  // stored in it or the run was trained in it, else f32.
  using Precision = std::optional<DType>;

  // A Hugging Face folder, a run's folder (its newest checkpoint), or a checkpoint. Throws UserError.
  static GeneratingModel open(const std::string& path, Precision precision);

  const std::string& path() const { return path_; }  // the folder or the checkpoint
  // The folder that files beside the weights lie in: a tokenizer, generation_config.json.
  const std::string& folder() const { return path_; }
  const std::string& description() const { return description_; }
  const HfModel& family() const { return *family_; }
  DType precision() const { return precision_; }

  // A graph that generates, with parameters of the types they are kept in.
  Model build(HfGraph graph) const;
  PassOptions passes() const;

  int64_t weight_bytes() const { return weight_bytes_; }
  int64_t parameters() const { return parameters_; }
  // Throws UserError for a file that cannot be read.
  void load(Backend& backend);
  void* address(const std::string& name) const { return weights_.at(name)->data(); }

 private:
  // A parameter of the graph and where its values come from.
  struct Stored {
    TensorSpec tensor;  // as it is stored
    DType kept;
  };
  GeneratingModel() = default;
  void open_folder(const std::string& path, Precision precision);
  void open_run(const std::string& path, Precision precision);
  void add(const std::string& name, const TensorSpec& stored);
  void finish(Precision precision, bool bf16_otherwise);

  std::string path_, description_;
  std::shared_ptr<const HfModel> family_;
  std::function<Model(Model)> adapted_;  // with the matrices of LoRA, where the run has them
  std::function<void(const TensorSpec& tensor, int64_t first, std::span<std::byte> into)> read_;
  std::map<std::string, Stored> stored_;  // by the graph's name
  DType precision_ = DType::kF32;
  int64_t weight_bytes_ = 0, parameters_ = 0;
  std::map<std::string, std::unique_ptr<Buffer>> weights_;
};

}  // namespace lockstep

// HfSource: a Hugging Face folder that a job names: its config.json, the model that it describes, and where
// the values of that model's parameters lie. A checkpoint of a run that began with such a folder is one too.
//
// Opening reads config.json and the headers of the weights, not the weights.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/family.h"
#include "model/hf/family.h"
#include "model/hf/weight_match.h"

namespace lockstep {

struct HfSourceOptions {
  bool weights = true;                  // false: parameters are drawn, and no file of weights is needed
  std::string weights_folder = {};      // where they lie, if not beside config.json
  std::optional<HfHead> head = {};      // unset: that of the class which config.json names
  std::optional<int64_t> classes = {};  // unset: as many as config.json names labels
};

class HfSource {
 public:
  // Throws UserError.
  HfSource(std::string folder, const HfSourceOptions& options);
  HfSource(const HfSource&) = delete;
  HfSource& operator=(const HfSource&) = delete;

  const std::string& folder() const { return folder_; }
  const HfModel& model() const { return *model_; }
  // The same in the terms of the rest of the program.
  const ModelFamily& family() const { return family_; }
  // config.json as it holds for the model above: with its class, its labels, and untied where tensors that it
  // ties differ. All other keys are as they were.
  const std::string& config() const { return config_; }
  // Null where parameters are drawn.
  const HfWeightFiles* files() const { return files_.get(); }
  const WeightMatch& match() const { return match_; }
  // The type that the parameter's values are stored in; f32 where they are drawn.
  DType stored(std::string_view parameter) const;
  // Where this parameter's values lie, if in its type and shape; null: it is drawn, or kept in another type.
  const StoredTensor* find(const TensorSpec& parameter) const;
  // The files beside, name and content (model/hf/weight_files.h).
  std::vector<std::pair<std::string, std::string>> companions() const { return hf_companions(folder_); }

 private:
  void make_model(const HfSourceOptions& options);
  ModelFamily make_family() const;

  std::string folder_;
  std::string config_;
  std::unique_ptr<HfModel> model_;
  std::unique_ptr<HfWeightFiles> files_;
  WeightMatch match_;
  ModelFamily family_;
};

// The parameters of a model as its files hold them, in the order of its graph.
std::vector<TensorSpec> parameter_specs(const Model& model);

// config.json with the type that weights are stored in, under the key that the file uses.
std::string config_with_dtype(const std::string& config, DType dtype);

}  // namespace lockstep

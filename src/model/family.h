// A model family: everything the rest of the program asks of one. A family is a file of this folder with a
// function <name>_family() and a word in the list of families.cc; from that come its keys in the job file and
// their documentation, the data it takes, what `lockstep graph` and `lockstep bench step` call it, and the
// graphs that train and evaluate it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/label_task.h"
#include "model/model.h"

namespace lockstep {

// What a job's `model:` section may say, by the name of its key. A family reads those that its `keys` name;
// limits and meaning of each are in job/fields_model.cc.
struct ModelSizes {
  int64_t layers = 0, dim = 0, heads = 0, vocab = 0, seq = 0;
  std::optional<int64_t> kv_heads = {};  // unset: as many as heads
  std::optional<int64_t> hidden = {};    // unset: 4 * dim, of llama as llama_hidden says
  int64_t classes = 0, depth = 0, width = 0, image = 0, rows = 0;
  std::optional<int64_t> tables = {}, dense = {};  // unset: as many as the data's columns
  std::vector<int64_t> bottom = {}, top = {};
  double dropout = 0;
  double rope_theta = 10000, norm_epsilon = 1e-5;
  bool tied = false;
  LabelTask task = LabelTask::kAuto;
};

// What the data says about the model's inputs, where the job leaves it to the data.
struct InputSizes {
  int64_t tables = 6;     // categorical inputs
  int64_t dense = 8;      // numeric inputs
  bool weighted = false;  // tables: a record's loss has a weight
  // Of tables: what the labels ask for, of how many classes, or standardised how.
  LabelTask task = LabelTask::kBinary;
  int64_t classes = 2;
  TargetScale target = {};
  bool documents = false;  // rows of tokens say which document a position belongs to
  bool padded = false;     // rows of tokens say which positions hold one
};

// The kinds of records that a family can be trained on, each with its formats of files and generated data.
enum class Records : uint8_t {
  kTokens,  // rows of tokens, each position with the next one as its target
  kText,    // a column of text with a class
  kTable,   // columns of numbers and categories with a label
  kImages,  // images with a class
};

// Sizes that cannot hold together, each within its own limits: "model.<key> <value> <problem>".
struct SizeProblem {
  std::string_view key;
  int64_t value = 0;
  std::string problem;
};

// A model of the family under a name of its own, to look at and to measure without a job file.
struct ModelExample {
  std::string_view name;
  ModelSizes sizes;
  int64_t batch = 1;
};

struct ModelFamily {
  std::string_view name;
  Records records = Records::kTokens;
  std::vector<std::string_view> keys;  // of ModelSizes
  ModelSizes defaults;
  std::vector<ModelExample> examples;
  std::function<std::optional<SizeProblem>(const ModelSizes& sizes)> check = {};
  // The graph of `batch` samples, to train or to evaluate with.
  std::function<Model(const ModelSizes& sizes, const InputSizes& inputs, int64_t batch, bool training)>
      build = {};
};

// In the order of the documentation.
const std::vector<const ModelFamily*>& model_families();
// Their names; those that take records of a kind.
const std::vector<std::string_view>& family_names();
std::vector<std::string_view> family_names(Records records);

// For families with attention: every head has the same width.
std::optional<SizeProblem> check_heads(const ModelSizes& sizes);

}  // namespace lockstep

// The model that a job asks for.
#pragma once
#include "job/spec.h"
#include "model/model.h"

namespace lockstep {

// What the data says about the model's inputs, where the job leaves it to the data.
struct InputSizes {
  int64_t tables = 6;      // categorical inputs
  int64_t dense = 8;       // numeric inputs
  bool weighted = false;   // tables: a record's loss has a weight
  bool documents = false;  // rows of tokens say which document a position belongs to
  bool padded = false;     // rows of tokens say which positions hold one
};

// The graph that trains on one microbatch. Throws UserError if the sizes do not make a model.
Model build_job_model(const JobSpec& spec, const InputSizes& inputs);
// The graph that evaluates a batch.
Model build_job_evaluation(const JobSpec& spec, const InputSizes& inputs, int64_t batch);
int64_t parameter_count(const Model& model);

}  // namespace lockstep

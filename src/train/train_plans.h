// The plans of a training step, made before any memory is taken: what `lockstep check` prints and what a run
// compares with the memory there is.
//
// backward runs once per microbatch, the others once per step. They run one after another, so that all
// share one arena of the size of the largest.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "model/model.h"
#include "passes/row_gradients.h"
#include "runtime/compile.h"
#include "runtime/flat.h"
#include "train/optimizer.h"
#include "train/reduce_options.h"
#include "train/state_share.h"

namespace lockstep {

struct TrainOptions {
  PassOptions passes = {};
  OptimizerSettings optimizer = {};
  uint64_t seed = 0;
  int64_t microbatches = 1;  // M
  int64_t leaves = 1;        // V, divides M
  double ema = 0;            // decay of the moving average of the weights; 0: none is kept
  int64_t workers = 1;       // that share the leaves; changes no bit
  // Of this worker, where workers of a host may hold the state together; changes no bit.
  std::optional<HostPlace> host = {};
  ReduceOptions reduce = {};
  bool draws_weights = true;  // else somebody gives them before the first step

  StateShare share() const { return {host, optimizer, reduce}; }
  // Whether a sum that a worker holds takes several microbatches.
  bool accumulates() const {
    return reduce.order == SumOrder::kFast ? microbatches > workers : microbatches > leaves;
  }
};

struct TrainPlans {
  FlatLayout layout;
  std::vector<RowTable> tables;                // whose gradients are lists of rows
  std::optional<Plan> backward, norm, update;  // always there
  std::optional<Plan> backward_accumulate;     // where a leaf has several microbatches
  std::optional<Plan> catch_up, catch_up_all;  // where there are tables
  std::optional<Plan> catch_up_sums;           // where there are tables and peers, who read other rows
  std::optional<Plan> ema;
  std::optional<Plan> statistics;  // where the model has some
  double milliseconds = 0;         // from the model's graph to all of them

  std::vector<const Plan*> all() const;  // those that are there
  int64_t arena_bytes() const;
};

// Throws UserError where leaves do not divide microbatches, or the optimizer is unknown.
TrainPlans plan_training(const Model& model, Backend& backend, const TrainOptions& options);

}  // namespace lockstep

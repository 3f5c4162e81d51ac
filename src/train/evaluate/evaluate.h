// Evaluator: a model made ready to be measured on held-out records.
//
// Forward only, on the graph that is built for evaluation, with the passes of training (a bf16 job is
// evaluated in bf16). Records are read in their order, in full batches and a tail of its own size: nothing is
// padded, so every record counts once. Bits do not depend on threads; the size of a batch may move the last
// ones of the loss, and of a model's answers.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "data/source/source.h"
#include "data/stream/batch_stream.h"
#include "model/model.h"
#include "runtime/compile.h"
#include "train/evaluate/eval_result.h"

namespace lockstep {

// Batches that are evaluated together. Plans are packed in a time that is quadratic in them: 0.15 s of a 7B
// model.
inline constexpr int64_t kMostTogether = 8;

// What evaluates a batch with an evaluation model.
Plan plan_evaluation(const Model& model, Backend& backend, const PassOptions& passes);
int64_t evaluation_bytes(const Plan& plan);  // inputs and arena; the weights are the caller's

// What evaluates several together where parameters are gathered in units, which then come once for all of
// them: as many as are there, up to so many that they take half as much again as one does. No more than there
// are units, so that those who serve them hear of the next one about as soon as of one batch.
struct BatchesPlan {
  Plan plan;
  int64_t batches = 1;
};
BatchesPlan plan_batches(const Model& model, Backend& backend, const PassOptions& passes,
                         int64_t there = kMostTogether);

class Evaluator {
 public:
  // Gives the evaluation model for a number of records per batch.
  using Build = std::function<Model(int64_t batch)>;
  // Gives the device address of a parameter or running statistic: the weights, or their moving average. Rows
  // of tables must be up to date.
  using AddressOf = std::function<void*(std::string_view name)>;

  Evaluator(const Build& build, Backend& backend, const PassOptions& passes, int64_t batch, int64_t records);

  // `source` has as many records as was said; `after_batch` is called after every batch. Throws UserError
  // when it lacks a column that the model takes.
  EvalResult run(
      const Source& source, const AddressOf& address_of, const std::function<void()>& after_batch = [] {},
      const StreamOptions& reading = {});

  // That parameters are gathered in (PassOptions::units), and who brings them. It must outlive run().
  const std::vector<ParamUnit>& units() const { return units_; }
  void gather_with(UnitSource& source);

  // Is shown every batch and what was computed of it: output 2 is the model's answer. Only where parameters
  // are there as a whole.
  using Look = std::function<void(const Batch& batch, const Executable& computed)>;
  void on_batch(Look look) { look_ = std::move(look); }

  Task task() const { return task_; }
  int64_t planned_bytes() const { return planned_bytes_; }  // inputs and arena

 private:
  class Scores;
  struct Input {
    std::string name;
    Type type;
  };
  // What runs batches of one size.
  struct Prepared {
    std::unique_ptr<Executable> executable;  // null: there are no such batches
    std::vector<Input> inputs;               // of a batch
    int64_t rows = 0;                        // of one
    int64_t together = 1;                    // batches
  };
  Prepared prepare(const Build& build, const PassOptions& passes, int64_t batch, int64_t there);
  void bind_weights(const Prepared& prepared, const AddressOf& address_of) const;
  void load(const Prepared& prepared, const Batch& from, int64_t first, int64_t number);
  void run_batches(const Prepared& prepared, const Batch& from, int64_t first, Scores& scores);

  Backend& backend_;
  Look look_;
  std::vector<ParamUnit> units_;
  int64_t batch_;
  int64_t records_;
  Task task_ = Task::kClassify;
  TargetScale target_;
  int64_t planned_bytes_ = 0;
  std::shared_ptr<Buffer> arena_;  // of both
  Prepared full_;                  // none with fewer records than a batch
  Prepared tail_;                  // none when batches come out even
  std::unordered_map<std::string, std::unique_ptr<Buffer>> inputs_;
};

}  // namespace lockstep

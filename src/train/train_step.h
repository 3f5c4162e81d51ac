// TrainStep: one model made ready to train on one backend.
//
// A step has M microbatches of one shape and V leaves. Leaf v accumulates its M/V microbatches in index
// order; leaves are summed by the binary tree over their indices (train/leaf_tree.h); then one update.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/model.h"
#include "runtime/compile.h"
#include "runtime/flat.h"
#include "train/gradient_slots.h"
#include "train/update.h"

namespace lockstep {

struct TrainOptions {
  PassOptions passes = {};
  OptimizerSettings optimizer = {};
  uint64_t seed = 0;
  int64_t microbatches = 1;  // M
  int64_t leaves = 1;        // V, divides M
};

struct StepResult {
  double loss = 0;  // mean over what the loss counts
  int64_t count = 0;
  double grad_norm = 0;
};

class TrainStep {
 public:
  TrainStep(const Model& model, Backend& backend, const TrainOptions& options);

  // Copies one microbatch's data into the buffer of a graph input.
  void set_input(std::string_view name, const void* host, int64_t bytes);
  // Forward and backward of every microbatch: gradients, their norm, the loss. `load` calls set_input for the
  // microbatch it is given; with one microbatch it may be left out.
  StepResult accumulate(const std::function<void(int64_t microbatch)>& load = {});
  // One step of the optimizer with the gradients at hand. A step may be left out: nothing happened then.
  void apply(double lr);
  // Both, for callers that always apply.
  StepResult run(double lr, const std::function<void(int64_t microbatch)>& load = {});
  int64_t steps_applied() const { return steps_applied_; }
  // Brings every row of every table up to date. Reading parameters does it too.
  void catch_up_all();

  // SHA-256 over all parameters sorted by name: name, dtype, shape, then the fp32 values (docs/design.md).
  std::string weights_sha256();
  std::vector<float> param(std::string_view name);
  void set_param(std::string_view name, const std::vector<float>& values);
  // The gradient of the last step, a sum over the microbatch; of a table with row gradients, made dense.
  std::vector<float> grad(std::string_view name) const;

  struct Param {
    std::string name;
    Shape shape;
    void* data;  // on the device
  };
  const std::vector<Param>& params() const { return params_; }
  Executable& backward() { return *backward_; }
  Executable& update() { return *update_; }
  int64_t param_count() const;
  // From the model's graph to all plans.
  double compile_milliseconds() const { return compile_milliseconds_; }
  // Bytes of parameters, gradients, optimizer state, inputs and arenas: what the run is planned to use.
  int64_t planned_bytes() const;

 private:
  void compile_all(const Model& model);
  void allocate_flat();
  void allocate_tables();
  void allocate_inputs();
  void initialise(const ParamInit& init);
  // Runs one microbatch's backward into a slot: written, or added to what the slot holds.
  void run_backward(int64_t slot, bool accumulate);
  void bind_root(Executable& executable);
  std::vector<Executable*> executables() const;
  Region gradient_region() const;
  void bind_gradients(Executable& executable, GradientSlot& slot, std::vector<RowList>& lists);
  void* allocate(int64_t bytes);
  const Param& find_param(std::string_view name) const;

  Backend& backend_;
  TrainOptions options_;
  double compile_milliseconds_ = 0;
  FlatLayout layout_;
  std::vector<RowTable> tables_;
  std::unique_ptr<Executable> backward_;
  std::unique_ptr<Executable> backward_accumulate_;  // null unless a leaf has several microbatches
  std::unique_ptr<GradientSlots> slots_;
  std::vector<RowList> lists_;  // of a microbatch that is added to a leaf
  std::unique_ptr<Executable> norm_;
  std::unique_ptr<Executable> update_;
  std::unique_ptr<Executable> catch_up_;      // null without tables
  std::unique_ptr<Executable> catch_up_all_;  // null without tables
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::unordered_map<std::string, void*> addresses_;  // of every bound input, by name
  std::vector<Param> params_;
  std::unordered_map<std::string, int64_t> input_bytes_;
  int64_t steps_applied_ = 0;
  int64_t caught_up_ = 0;  // the step that every row has reached
};

}  // namespace lockstep

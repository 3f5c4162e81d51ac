// TrainStep: one model made ready to train on one backend: forward and backward of a microbatch, then the update.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/model.h"
#include "runtime/compile.h"
#include "runtime/flat.h"
#include "train/update.h"

namespace lockstep {

struct TrainOptions {
  PassOptions passes;
  OptimizerSettings optimizer;
  uint64_t seed = 0;
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
  // Forward, backward, clip, update. `step` counts from 1.
  StepResult run(int64_t step, double lr);

  // SHA-256 over all parameters sorted by name: name, dtype, shape, then the fp32 values (docs/design.md).
  std::string weights_sha256() const;
  std::vector<float> param(std::string_view name) const;
  std::vector<float> grad(std::string_view name) const;  // of the last step, a sum
  void set_param(std::string_view name, const std::vector<float>& values);

  const FlatLayout& layout() const { return layout_; }
  Executable& backward() { return *backward_; }
  Executable& update() { return *update_; }
  // From the model's graph to both plans.
  double compile_milliseconds() const { return compile_milliseconds_; }
  // Bytes of parameters, gradients, optimizer state, inputs and both arenas: what the run is planned to use.
  int64_t planned_bytes() const;

 private:
  void allocate(const Model& model, uint64_t seed);
  Buffer& owned(int64_t bytes);
  std::vector<float> read_flat(const Buffer& buffer, std::string_view name) const;

  Backend& backend_;
  double compile_milliseconds_ = 0;
  FlatLayout layout_;
  std::unique_ptr<Executable> backward_;
  std::unique_ptr<Executable> update_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  Buffer* params_ = nullptr;
  Buffer* grads_ = nullptr;
  Buffer* lr_ = nullptr;
  Buffer* step_ = nullptr;
  Buffer* count_ = nullptr;
  std::unordered_map<std::string, Buffer*> inputs_;
};

}  // namespace lockstep

#include "train/train_step.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/sha256.h"
#include "graph/op_def.h"
#include "passes/autodiff.h"

namespace lockstep {

TrainStep::TrainStep(const Model& model, Backend& backend, const TrainOptions& options)
    : backend_(backend) {
  const auto start = std::chrono::steady_clock::now();
  layout_ = backward_order_layout(differentiate(model.graph));
  backward_ = compile(model.graph, backend, options.passes);
  PassOptions update_passes = options.passes;
  update_passes.disabled.emplace_back("autodiff");
  update_ = compile(build_adamw_update(layout_, model.params, options.optimizer), backend, update_passes);
  compile_milliseconds_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  allocate(model, options.seed);
}

Buffer& TrainStep::owned(int64_t bytes) {
  buffers_.push_back(backend_.allocate(bytes));
  return *buffers_.back();
}

void TrainStep::allocate(const Model& model, uint64_t seed) {
  const int64_t bytes = layout_.numel() * static_cast<int64_t>(sizeof(float));
  params_ = &owned(bytes);
  grads_ = &owned(bytes);
  update_->bind("params", params_->data());
  update_->bind("grads", grads_->data());
  update_->bind("moment1", owned(bytes).data());
  update_->bind("moment2", owned(bytes).data());
  update_->bind("lr", (lr_ = &owned(sizeof(float)))->data());
  update_->bind("step", (step_ = &owned(sizeof(int64_t)))->data());
  update_->bind("count", (count_ = &owned(sizeof(int64_t)))->data());

  std::vector<float> values;
  for (const FlatEntry& entry : layout_.entries()) {
    const int64_t offset = entry.offset * static_cast<int64_t>(sizeof(float));
    backward_->bind(entry.name, static_cast<char*>(params_->data()) + offset);
    backward_->bind(grad_name(entry.name), static_cast<char*>(grads_->data()) + offset);
    const auto init = std::find_if(model.params.begin(), model.params.end(), [&](const ParamInit& p) { return p.name == entry.name; });
    LOCKSTEP_CHECK(init != model.params.end(), "parameter {} has no initial value", entry.name);
    values.resize(static_cast<size_t>(entry.shape.numel()));
    init_param(*init, seed, values);
    set_param(entry.name, values);
  }
  for (const GraphInput& input : backward_->graph().inputs()) {
    if (input.role != Role::kInput && input.role != Role::kState) continue;
    const std::string& name = backward_->graph().name(input.value);
    Buffer& buffer = owned(backward_->graph().type(input.value).bytes());
    inputs_[name] = &buffer;
    backward_->bind(name, buffer.data());
  }
}

void TrainStep::set_input(std::string_view name, const void* host, int64_t bytes) {
  const auto found = inputs_.find(std::string(name));
  if (found == inputs_.end()) throw UserError("the model has no input {}", name);
  if (found->second->bytes() != bytes)
    throw UserError("input {} takes {} bytes, got {}", name, found->second->bytes(), bytes);
  backend_.upload(found->second->data(), host, bytes);
}

StepResult TrainStep::run(int64_t step, double lr) {
  StepResult result;
  float loss = 0;
  float norm = 0;
  const auto rate = static_cast<float>(lr);
  backward_->run();
  backend_.download(&loss, backward_->output(0), sizeof loss);
  backend_.download(&result.count, backward_->output(1), sizeof result.count);
  backend_.upload(count_->data(), &result.count, sizeof result.count);
  backend_.upload(lr_->data(), &rate, sizeof rate);
  backend_.upload(step_->data(), &step, sizeof step);
  update_->run();
  backend_.download(&norm, update_->output(0), sizeof norm);
  result.loss = static_cast<double>(loss) / static_cast<double>(std::max<int64_t>(result.count, 1));
  result.grad_norm = norm;
  return result;
}

std::vector<float> TrainStep::read_flat(const Buffer& buffer, std::string_view name) const {
  const FlatEntry& entry = layout_.find(name);
  std::vector<float> values(static_cast<size_t>(entry.shape.numel()));
  const int64_t offset = entry.offset * static_cast<int64_t>(sizeof(float));
  backend_.download(values.data(), static_cast<const char*>(const_cast<Buffer&>(buffer).data()) + offset,
                    entry.shape.numel() * static_cast<int64_t>(sizeof(float)));
  return values;
}

std::vector<float> TrainStep::param(std::string_view name) const { return read_flat(*params_, name); }
std::vector<float> TrainStep::grad(std::string_view name) const { return read_flat(*grads_, name); }

void TrainStep::set_param(std::string_view name, const std::vector<float>& values) {
  const FlatEntry& entry = layout_.find(name);
  LOCKSTEP_CHECK(static_cast<int64_t>(values.size()) == entry.shape.numel(), "values for {}", name);
  backend_.upload(static_cast<char*>(params_->data()) + entry.offset * static_cast<int64_t>(sizeof(float)), values.data(),
                  entry.shape.numel() * static_cast<int64_t>(sizeof(float)));
}

std::string TrainStep::weights_sha256() const {
  std::vector<const FlatEntry*> sorted;
  for (const FlatEntry& entry : layout_.entries()) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const FlatEntry* a, const FlatEntry* b) { return a->name < b->name; });
  Sha256 hash;
  for (const FlatEntry* entry : sorted) {
    hash.update(entry->name);
    hash.update("f32");
    hash.update(to_string(entry->shape));
    const std::vector<float> values = param(entry->name);
    hash.update(std::as_bytes(std::span(values)));
  }
  return hash.finish();
}

int64_t TrainStep::planned_bytes() const {
  int64_t bytes = backward_->plan().memory.arena_peak + update_->plan().memory.arena_peak;
  for (const auto& buffer : buffers_) bytes += buffer->bytes();
  return bytes;
}

}  // namespace lockstep

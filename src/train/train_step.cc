#include "train/train_step.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/sha256.h"
#include "graph/op_def.h"
#include "passes/autodiff.h"

namespace lockstep {
namespace {

constexpr int64_t kFloat = sizeof(float);

// Binds every input of an executable whose name has an address.
void bind_all(Executable& executable, const std::unordered_map<std::string, void*>& addresses) {
  for (const GraphInput& input : executable.graph().inputs()) {
    const auto found = addresses.find(executable.graph().name(input.value));
    if (found != addresses.end()) executable.bind(found->first, found->second);
  }
}

}  // namespace

TrainStep::TrainStep(const Model& model, Backend& backend, const TrainOptions& options) : backend_(backend) {
  const auto start = std::chrono::steady_clock::now();
  compile_all(model, options);
  compile_milliseconds_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  allocate_flat();
  allocate_tables();
  allocate_inputs();
  for (Executable* executable : {backward_.get(), update_.get(), catch_up_.get(), catch_up_all_.get()})
    if (executable != nullptr) bind_all(*executable, addresses_);
  std::vector<float> values;
  for (const ParamInit& init : model.params) {
    values.resize(static_cast<size_t>(find_param(init.name).shape.numel()));
    init_param(init, options.seed, values);
    set_param(init.name, values);
  }
}

void TrainStep::compile_all(const Model& model, const TrainOptions& options) {
  const Graph differentiated = differentiate(model.graph);
  // The layout and the set of tables follow from the model alone, whatever other passes do.
  const bool row_gradients = std::count(options.passes.disabled.begin(), options.passes.disabled.end(), "row_gradients") == 0;
  if (row_gradients) tables_ = row_tables(differentiated);
  layout_ = backward_order_layout(row_gradients ? make_row_gradients(differentiated, {}) : differentiated);
  backward_ = compile(model.graph, backend_, options.passes);
  PassOptions passes = options.passes;
  passes.disabled.emplace_back("autodiff");
  update_ = compile(build_adamw_update(layout_, model.params, tables_, options.optimizer), backend_, passes);
  if (tables_.empty()) return;
  catch_up_ = compile(build_catch_up(model.params, tables_, options.optimizer, false), backend_, passes);
  catch_up_all_ = compile(build_catch_up(model.params, tables_, options.optimizer, true), backend_, passes);
}

void* TrainStep::allocate(int64_t bytes) {
  buffers_.push_back(backend_.allocate(bytes));
  return buffers_.back()->data();
}

void TrainStep::allocate_flat() {
  const int64_t bytes = layout_.numel() * kFloat;
  for (const char* name : {"params", "grads", "moment1", "moment2"}) addresses_[name] = allocate(bytes);
  for (const FlatEntry& entry : layout_.entries()) {
    addresses_[entry.name] = static_cast<char*>(addresses_["params"]) + entry.offset * kFloat;
    addresses_[grad_name(entry.name)] = static_cast<char*>(addresses_["grads"]) + entry.offset * kFloat;
    params_.push_back({entry.name, entry.shape, addresses_[entry.name]});
  }
}

void TrainStep::allocate_tables() {
  for (const RowTable& table : tables_) {
    for (const std::string& name : {table.name, moment1_name(table.name), moment2_name(table.name)})
      addresses_[name] = allocate(table.table.numel() * kFloat);
    addresses_[last_step_name(table.name)] = allocate(table.table[0] * static_cast<int64_t>(sizeof(int32_t)));
    addresses_[grad_ids_name(table.name)] = allocate(table.ids * static_cast<int64_t>(sizeof(int32_t)));
    addresses_[grad_rows_name(table.name)] = allocate(table.ids * table.table[1] * kFloat);
    params_.push_back({table.name, table.table, addresses_[table.name]});
  }
}

void TrainStep::allocate_inputs() {
  addresses_["lr"] = allocate(kFloat);
  addresses_["step"] = allocate(sizeof(int64_t));
  addresses_["count"] = allocate(sizeof(int64_t));
  addresses_["lr_history"] = allocate(kLrHistory * kFloat);
  for (const GraphInput& input : backward_->graph().inputs()) {
    if (input.role != Role::kInput && input.role != Role::kState) continue;
    const std::string& name = backward_->graph().name(input.value);
    input_bytes_[name] = backward_->graph().type(input.value).bytes();
    addresses_[name] = allocate(input_bytes_[name]);
  }
}

void TrainStep::set_input(std::string_view name, const void* host, int64_t bytes) {
  const auto found = input_bytes_.find(std::string(name));
  if (found == input_bytes_.end()) throw UserError("the model has no input {}", name);
  if (found->second != bytes) throw UserError("input {} takes {} bytes, got {}", name, found->second, bytes);
  backend_.upload(addresses_.at(found->first), host, bytes);
}

StepResult TrainStep::run(int64_t step, double lr) {
  LOCKSTEP_CHECK(step == steps_done_ + 1, "step {} after step {}", step, steps_done_);
  StepResult result;
  float loss = 0;
  float norm = 0;
  const auto rate = static_cast<float>(lr);
  // A row may be left behind for at most as many steps as learning rates are remembered.
  if (step - caught_up_ >= kLrHistory) catch_up_all();
  backend_.upload(addresses_["step"], &step, sizeof step);
  backend_.upload(addresses_["lr"], &rate, sizeof rate);
  backend_.upload(static_cast<char*>(addresses_["lr_history"]) + step % kLrHistory * kFloat, &rate, sizeof rate);
  if (catch_up_) catch_up_->run();
  backward_->run();
  backend_.download(&loss, backward_->output(0), sizeof loss);
  backend_.download(&result.count, backward_->output(1), sizeof result.count);
  backend_.upload(addresses_["count"], &result.count, sizeof result.count);
  update_->run();
  backend_.download(&norm, update_->output(0), sizeof norm);
  steps_done_ = step;
  result.loss = static_cast<double>(loss) / static_cast<double>(std::max<int64_t>(result.count, 1));
  result.grad_norm = norm;
  return result;
}

void TrainStep::catch_up_all() {
  if (!catch_up_all_ || caught_up_ == steps_done_) return;
  const int64_t next = steps_done_ + 1;
  backend_.upload(addresses_["step"], &next, sizeof next);
  catch_up_all_->run();
  caught_up_ = steps_done_;
}

const TrainStep::Param& TrainStep::find_param(std::string_view name) const {
  for (const Param& param : params_)
    if (param.name == name) return param;
  throw UserError("the model has no parameter {}", name);
}

std::vector<float> TrainStep::param(std::string_view name) {
  catch_up_all();
  const Param& found = find_param(name);
  std::vector<float> values(static_cast<size_t>(found.shape.numel()));
  backend_.download(values.data(), found.data, found.shape.numel() * kFloat);
  return values;
}

void TrainStep::set_param(std::string_view name, const std::vector<float>& values) {
  const Param& found = find_param(name);
  LOCKSTEP_CHECK(static_cast<int64_t>(values.size()) == found.shape.numel(), "values for {}", name);
  backend_.upload(found.data, values.data(), found.shape.numel() * kFloat);
}

std::vector<float> TrainStep::grad(std::string_view name) const {
  const Param& found = find_param(name);
  std::vector<float> values(static_cast<size_t>(found.shape.numel()), 0.0f);
  const auto dense = addresses_.find(grad_name(name));
  if (dense != addresses_.end()) {
    backend_.download(values.data(), dense->second, found.shape.numel() * kFloat);
    return values;
  }
  const RowTable& table = *std::find_if(tables_.begin(), tables_.end(), [&](const RowTable& t) { return t.name == name; });
  std::vector<int32_t> ids(static_cast<size_t>(table.ids));
  std::vector<float> rows(static_cast<size_t>(table.ids * table.table[1]));
  backend_.download(ids.data(), addresses_.at(grad_ids_name(name)), table.ids * static_cast<int64_t>(sizeof(int32_t)));
  backend_.download(rows.data(), addresses_.at(grad_rows_name(name)), static_cast<int64_t>(rows.size()) * kFloat);
  for (int64_t i = 0; i < table.ids; ++i) {
    const int32_t id = ids[static_cast<size_t>(i)];
    if (id >= 0) std::copy_n(rows.begin() + i * table.table[1], table.table[1], values.begin() + id * table.table[1]);
  }
  return values;
}

std::string TrainStep::weights_sha256() {
  std::vector<const Param*> sorted;
  for (const Param& entry : params_) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const Param* a, const Param* b) { return a->name < b->name; });
  Sha256 hash;
  for (const Param* entry : sorted) {
    hash.update(entry->name);
    hash.update("f32");
    hash.update(to_string(entry->shape));
    const std::vector<float> values = param(entry->name);
    hash.update(std::as_bytes(std::span(values)));
  }
  return hash.finish();
}

int64_t TrainStep::param_count() const {
  int64_t count = 0;
  for (const Param& entry : params_) count += entry.shape.numel();
  return count;
}

int64_t TrainStep::planned_bytes() const {
  int64_t bytes = 0;
  for (const Executable* executable : {backward_.get(), update_.get(), catch_up_.get(), catch_up_all_.get()})
    if (executable != nullptr) bytes += executable->plan().memory.arena_peak;
  for (const auto& buffer : buffers_) bytes += buffer->bytes();
  return bytes;
}

}  // namespace lockstep

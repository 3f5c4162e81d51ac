#include "train/train_step.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/sha256.h"
#include "graph/op_def.h"
#include "passes/autodiff.h"
#include "train/leaf_tree.h"

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

TrainStep::TrainStep(const Model& model, Backend& backend, const TrainOptions& options)
    : backend_(backend), options_(options) {
  if (options.microbatches < 1 || options.leaves < 1 || options.microbatches % options.leaves != 0)
    throw UserError("{} leaves do not divide {} microbatches", options.leaves, options.microbatches);
  const auto start = std::chrono::steady_clock::now();
  compile_all(model);
  compile_milliseconds_ =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  allocate_flat();
  allocate_tables();
  allocate_inputs();
  for (Executable* executable : executables()) bind_all(*executable, addresses_);
  for (const ParamInit& init : model.params) initialise(init);
}

// In pieces: a host copy of the largest parameter would be the peak of the whole start.
void TrainStep::initialise(const ParamInit& init) {
  constexpr int64_t kPiece = 1 << 16;
  const Param& found = find_param(init.name);
  std::vector<float> piece(static_cast<size_t>(std::min(kPiece, found.shape.numel())));
  for (int64_t first = 0; first < found.shape.numel(); first += kPiece) {
    const std::span<float> values(piece.data(),
                                  static_cast<size_t>(std::min(kPiece, found.shape.numel() - first)));
    init_param(init, options_.seed, first, values);
    backend_.upload(static_cast<char*>(found.data) + first * kFloat, values.data(),
                    static_cast<int64_t>(values.size_bytes()));
  }
}

std::vector<Executable*> TrainStep::executables() const {
  std::vector<Executable*> all;
  for (Executable* executable : {backward_.get(), backward_accumulate_.get(), norm_.get(), update_.get(),
                                 catch_up_.get(), catch_up_all_.get()})
    if (executable != nullptr) all.push_back(executable);
  return all;
}

Region TrainStep::gradient_region() const {
  Region region;
  region.bytes = layout_.numel() * kFloat;
  for (const FlatEntry& entry : layout_.entries())
    region.entries.push_back({grad_name(entry.name), entry.offset * kFloat});
  return region;
}

void TrainStep::compile_all(const Model& model) {
  const Graph differentiated = differentiate(model.graph);
  // The layout and the set of tables follow from the model alone, whatever other passes do.
  PassOptions passes = options_.passes;
  if (!supports_row_updates(options_.optimizer)) passes.disabled.emplace_back("row_gradients");
  const bool row_gradients = std::count(passes.disabled.begin(), passes.disabled.end(), "row_gradients") == 0;
  if (row_gradients) tables_ = row_tables(differentiated);
  layout_ = backward_order_layout(row_gradients ? make_row_gradients(differentiated, {}) : differentiated);
  backward_ = compile(model.graph, backend_, passes, gradient_region());
  if (options_.microbatches > options_.leaves) {
    passes.accumulate_gradients = true;
    backward_accumulate_ = compile(model.graph, backend_, passes, gradient_region());
  }
  // The update works on f32 sums and parameters, whatever forward computes in.
  passes.disabled.insert(passes.disabled.end(), {"autodiff", "bf16"});
  std::vector<RowTable> merged = tables_;
  for (RowTable& table : merged) table.ids *= options_.microbatches;
  norm_ = compile(build_norm(layout_, merged, options_.optimizer), backend_, passes);
  update_ = compile(build_update(layout_, model.params, merged, options_.optimizer), backend_, passes);
  if (tables_.empty()) return;
  catch_up_ = compile(build_catch_up(model.params, tables_, options_.optimizer, false), backend_, passes);
  catch_up_all_ = compile(build_catch_up(model.params, tables_, options_.optimizer, true), backend_, passes);
}

void* TrainStep::allocate(int64_t bytes) {
  buffers_.push_back(backend_.allocate(bytes));
  return buffers_.back()->data();
}

void TrainStep::allocate_flat() {
  const int64_t bytes = layout_.numel() * kFloat;
  addresses_["params"] = allocate(bytes);
  for (const StateBuffer& state : optimizer_state(layout_, options_.optimizer))
    addresses_[state.name] = allocate(state.numel * kFloat);
  slots_ = std::make_unique<GradientSlots>(backend_, layout_, tables_, leaf_tree_depth(options_.leaves));
  if (backward_accumulate_) lists_ = slots_->make_lists();
  for (const FlatEntry& entry : layout_.entries()) {
    addresses_[entry.name] = static_cast<char*>(addresses_["params"]) + entry.offset * kFloat;
    params_.push_back({entry.name, entry.shape, addresses_[entry.name]});
  }
}

void TrainStep::allocate_tables() {
  for (const RowTable& table : tables_) {
    for (const std::string& name : {table.name, moment1_name(table.name), moment2_name(table.name)})
      addresses_[name] = allocate(table.table.numel() * kFloat);
    addresses_[last_step_name(table.name)] = allocate(table.table[0] * static_cast<int64_t>(sizeof(int32_t)));
    params_.push_back({table.name, table.table, addresses_[table.name]});
  }
}

void TrainStep::allocate_inputs() {
  addresses_["lr"] = allocate(kFloat);
  addresses_["step"] = allocate(sizeof(int64_t));
  addresses_["count"] = allocate(sizeof(int64_t));
  addresses_["scale"] = allocate(kFloat);
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

void TrainStep::bind_gradients(Executable& executable, GradientSlot& slot, std::vector<RowList>& lists) {
  executable.bind_region(slot.dense->data());
  for (size_t i = 0; i < tables_.size(); ++i) {
    executable.bind(grad_ids_name(tables_[i].name), lists[i].ids->data());
    executable.bind(grad_rows_name(tables_[i].name), lists[i].rows->data());
  }
}

void TrainStep::run_backward(int64_t slot, bool accumulate) {
  GradientSlot& target = (*slots_)[slot];
  Executable& executable = accumulate ? *backward_accumulate_ : *backward_;
  if (!accumulate) slots_->reset_lists(slot);
  bind_gradients(executable, target, accumulate ? lists_ : target.tables);
  executable.run();
  if (accumulate) slots_->add_lists(slot, lists_);
}

StepResult TrainStep::accumulate(const std::function<void(int64_t)>& load) {
  LOCKSTEP_CHECK(load || options_.microbatches == 1, "{} microbatches need a loader", options_.microbatches);
  // The step that the rows read now must have reached the one before.
  const int64_t next = steps_applied_ + 1;
  // A row may be left behind for at most as many steps as learning rates are remembered.
  if (next - caught_up_ >= kLrHistory) catch_up_all();
  backend_.upload(addresses_["step"], &next, sizeof next);

  StepResult result;
  // The loss takes the same tree as the gradients.
  std::vector<float> losses(static_cast<size_t>(leaf_tree_depth(options_.leaves)), 0.0f);
  LeafTree tree;
  const auto merge = [&](int64_t into, int64_t from) {
    slots_->add(into, from);
    losses[static_cast<size_t>(into)] += losses[static_cast<size_t>(from)];
  };
  const int64_t per_leaf = options_.microbatches / options_.leaves;
  for (int64_t m = 0; m < options_.microbatches; ++m) {
    if (load) load(m);
    if (catch_up_) catch_up_->run();
    const bool first = m % per_leaf == 0;
    const int64_t slot = tree.next_slot();
    run_backward(slot, !first);
    float loss = 0;
    int64_t count = 0;
    const Executable& executable = first ? *backward_ : *backward_accumulate_;
    backend_.download(&loss, executable.output(0), sizeof loss);
    backend_.download(&count, executable.output(1), sizeof count);
    losses[static_cast<size_t>(slot)] = first ? loss : losses[static_cast<size_t>(slot)] + loss;
    result.count += count;
    if ((m + 1) % per_leaf == 0) tree.push(merge);
  }
  tree.finish(merge);

  float norm = 0;
  backend_.upload(addresses_["count"], &result.count, sizeof result.count);
  bind_root(*norm_);
  norm_->run();
  backend_.download(&norm, norm_->output(0), sizeof norm);
  backend_.copy(addresses_["scale"], norm_->output(1), kFloat);
  result.loss = static_cast<double>(losses[0]) / static_cast<double>(std::max<int64_t>(result.count, 1));
  result.grad_norm = norm;
  return result;
}

void TrainStep::apply(double lr) {
  const int64_t step = ++steps_applied_;
  const auto rate = static_cast<float>(lr);
  backend_.upload(addresses_["step"], &step, sizeof step);
  backend_.upload(addresses_["lr"], &rate, sizeof rate);
  backend_.upload(static_cast<char*>(addresses_["lr_history"]) + step % kLrHistory * kFloat, &rate,
                  sizeof rate);
  bind_root(*update_);
  update_->run();
}

StepResult TrainStep::run(double lr, const std::function<void(int64_t)>& load) {
  const StepResult result = accumulate(load);
  apply(lr);
  return result;
}

// The root of the tree is in slot 0.
void TrainStep::bind_root(Executable& executable) {
  GradientSlot& root = (*slots_)[0];
  executable.bind("grads", root.dense->data());
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (executable.graph().find(grad_ids_name(tables_[i].name)).valid())
      executable.bind(grad_ids_name(tables_[i].name), root.tables[i].ids->data());
    executable.bind(grad_rows_name(tables_[i].name), root.tables[i].rows->data());
  }
}

void TrainStep::catch_up_all() {
  if (!catch_up_all_ || caught_up_ == steps_applied_) return;
  const int64_t next = steps_applied_ + 1;
  backend_.upload(addresses_["step"], &next, sizeof next);
  catch_up_all_->run();
  caught_up_ = steps_applied_;
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
  const GradientSlot& root = (*slots_)[0];
  for (const FlatEntry& entry : layout_.entries())
    if (entry.name == name)
      backend_.download(values.data(), static_cast<char*>(root.dense->data()) + entry.offset * kFloat,
                        found.shape.numel() * kFloat);
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].name != name) continue;
    const RowList& list = root.tables[i];
    const int64_t columns = tables_[i].table[1];
    std::vector<int32_t> ids(static_cast<size_t>(list.length));
    std::vector<float> rows(static_cast<size_t>(list.length * columns));
    backend_.download(ids.data(), list.ids->data(), list.ids->bytes());
    backend_.download(rows.data(), list.rows->data(), list.rows->bytes());
    for (int64_t k = 0; k < list.length; ++k)
      if (ids[static_cast<size_t>(k)] >= 0)
        std::copy_n(rows.begin() + k * columns, columns,
                    values.begin() + ids[static_cast<size_t>(k)] * columns);
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
  int64_t bytes = slots_->bytes();
  for (const Executable* executable : executables()) bytes += executable->plan().memory.arena_peak;
  for (const auto& buffer : buffers_) bytes += buffer->bytes();
  return bytes;
}

}  // namespace lockstep

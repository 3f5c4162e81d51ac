#include "train/train_step.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/error.h"
#include "graph/op_def.h"
#include "passes/bf16.h"
#include "train/group_memory.h"
#include "train/update.h"

namespace lockstep {
namespace {

constexpr int64_t kFloat = sizeof(float);
// The graph input that random ops take: (seed, position). Position counts microbatches from the start of the
// run.
constexpr std::string_view kRandomInput = "rng";

TrainState::Allocate flat_memory(Backend& backend, Group* group, const StateShare& share) {
  if (share.is_shared()) return [group](int64_t bytes) { return host_memory(*group, bytes); };
  return [&backend](int64_t bytes) { return backend.allocate(bytes); };
}

}  // namespace

TrainOptions options_in(const Group* group, const Backend& backend, TrainOptions options) {
  if (group != nullptr && backend.in_host_memory()) options.host = group->host();
  return options;
}

TrainStep::TrainStep(const Model& model, Backend& backend, const TrainOptions& options, Group* group)
    : TrainStep(plan_training(model, backend, options_in(group, backend, options)), model, backend,
                options_in(group, backend, options), group) {}

TrainStep::TrainStep(TrainPlans plans, const Model& model, Backend& backend, const TrainOptions& options,
                     Group* group)
    : backend_(backend),
      options_(options),
      compile_milliseconds_(plans.milliseconds),
      layout_(plans.layout),
      tables_(plans.tables),
      group_(group),
      share_(options.share()),
      state_(backend, layout_, tables_, options.optimizer, options.ema > 0, share_,
             flat_memory(backend, group, share_)) {
  make_executables(plans);
  sums_ = std::make_unique<LeafSums>(
      backend_, layout_, tables_,
      SumTree(options_.leaves, options_.microbatches, options_.reduce.order, group), options_.reduce, group);
  if (backward_accumulate_) lists_ = sums_->slots().make_lists();
  allocate_inputs();
  bind_all();
  if (options.draws_weights) state_.initialise(model, options.seed);
  meet_holders("the first weights");
}

void TrainStep::make_executables(TrainPlans& plans) {
  arena_ = backend_.allocate(plans.arena_bytes());
  const auto make = [&](std::optional<Plan>& plan) {
    return plan ? std::make_unique<Executable>(std::move(*plan), backend_, arena_) : nullptr;
  };
  backward_ = make(plans.backward);
  backward_accumulate_ = make(plans.backward_accumulate);
  norm_ = make(plans.norm);
  update_ = make(plans.update);
  ema_ = make(plans.ema);
  statistics_ = make(plans.statistics);
  catch_up_ = make(plans.catch_up);
  catch_up_sums_ = make(plans.catch_up_sums);
  catch_up_all_ = make(plans.catch_up_all);
}

std::vector<Executable*> TrainStep::executables() const {
  std::vector<Executable*> all;
  for (Executable* executable :
       {backward_.get(), backward_accumulate_.get(), norm_.get(), update_.get(), ema_.get(),
        statistics_.get(), catch_up_.get(), catch_up_sums_.get(), catch_up_all_.get()})
    if (executable != nullptr) all.push_back(executable);
  return all;
}

void TrainStep::bind_all() {
  for (Executable* executable : executables()) {
    state_.bind(*executable);
    for (const GraphInput& input : executable->graph().inputs()) {
      const auto found = addresses_.find(executable->graph().name(input.value));
      if (found != addresses_.end()) executable->bind(found->first, found->second);
    }
  }
}

void* TrainStep::allocate(std::string_view name, int64_t bytes) {
  buffers_.push_back(backend_.allocate(bytes));
  return addresses_[std::string(name)] = buffers_.back()->data();
}

void TrainStep::allocate_inputs() {
  allocate("lr", kFloat);
  allocate("step", sizeof(int64_t));
  allocate("count", sizeof(int64_t));
  allocate("scale", kFloat);
  allocate("lr_history", kLrHistory * kFloat);
  for (const GraphInput& input : backward_->graph().inputs()) {
    if (input.role != Role::kInput && input.role != Role::kState) continue;
    const std::string& name = backward_->graph().name(input.value);
    input_bytes_[name] = backward_->graph().type(input.value).bytes();
    allocate(name, input_bytes_[name]);
  }
}

void TrainStep::set_input(std::string_view name, const void* host, int64_t bytes) {
  const auto found = input_bytes_.find(std::string(name));
  if (found == input_bytes_.end()) throw UserError("the model has no input {}", name);
  if (found->second != bytes) throw UserError("input {} takes {} bytes, got {}", name, found->second, bytes);
  backend_.upload(addresses_.at(found->first), host, bytes);
}

std::vector<std::string> TrainStep::input_names() const {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : input_bytes_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

void TrainStep::bind_gradients(Executable& executable, GradientSlot& slot, std::vector<RowList>& lists) {
  executable.bind_region(slot.dense->data());
  for (size_t i = 0; i < tables_.size(); ++i) {
    executable.bind(grad_ids_name(tables_[i].name), lists[i].ids->data());
    executable.bind(grad_rows_name(tables_[i].name), lists[i].rows->data());
  }
}

void TrainStep::run_backward(int64_t microbatch) {
  const bool first = sums_->tree().begins_leaf(microbatch);
  const int64_t slot = sums_->slot();
  GradientSlot& target = sums_->slots()[slot];
  Executable& executable = first ? *backward_ : *backward_accumulate_;
  if (first) sums_->slots().reset_lists(slot);
  bind_gradients(executable, target, first ? target.tables : lists_);
  Executable::RegionReady ready;
  if (sums_->wants_ready(microbatch)) ready = [this](int64_t bytes) { sums_->ready(bytes); };
  executable.run(ready);
  if (!first) sums_->slots().add_lists(slot, lists_);
  float loss = 0;
  int64_t count = 0;
  backend_.download(&loss, executable.output(0), sizeof loss);
  backend_.download(&count, executable.output(1), sizeof count);
  sums_->add(loss, count, first);
}

void TrainStep::set_step(int64_t step) { backend_.upload(addresses_.at("step"), &step, sizeof step); }

void TrainStep::set_random(int64_t microbatch, int64_t step) {
  if (has_input(kRoundingInput)) {
    const std::array<int64_t, 2> key{static_cast<int64_t>(options_.seed), step};
    set_input(kRoundingInput, key.data(), sizeof key);
  }
  if (!has_input(kRandomInput)) return;
  const std::array<int64_t, 2> key{static_cast<int64_t>(options_.seed),
                                   (step - 1) * options_.microbatches + microbatch};
  set_input(kRandomInput, key.data(), sizeof key);
}

Executable& TrainStep::prepare_microbatch(int64_t microbatch, const Loader& load, int64_t step) {
  set_step(steps_applied_ + 1);
  if (load) load(microbatch);
  set_random(microbatch, step > 0 ? step : steps_applied_ + 1);
  if (catch_up_) catch_up_->run();
  sums_->slots().reset_lists(0);
  bind_gradients(*backward_, sums_->slots()[0], sums_->slots()[0].tables);
  return *backward_;
}

StepResult TrainStep::accumulate(const Loader& load, int64_t step, const Request& request) {
  LOCKSTEP_CHECK(load || options_.microbatches == 1, "{} microbatches need a loader", options_.microbatches);
  // A row may be left behind for at most as many steps as learning rates are remembered.
  if (steps_applied_ + 1 - caught_up_ >= kLrHistory) catch_up_all();
  // The rows that are read now must have reached the step before.
  set_step(steps_applied_ + 1);
  if (step == 0) step = steps_applied_ + 1;

  const SumTree& tree = sums_->tree();
  for (int64_t m = tree.first_microbatch(); m < tree.end_microbatch(); ++m) {
    if (load) load(m);
    set_random(m, step);
    if (catch_up_) catch_up_->run();
    run_backward(m);
    if (tree.ends_leaf(m)) sums_->push();
  }
  const SumTotals totals = sums_->finish(request ? request() : 0);
  StepResult result;
  result.request = totals.request;
  result.count = totals.count;
  result.loss = static_cast<double>(totals.loss) / static_cast<double>(std::max<int64_t>(totals.count, 1));

  float norm = 0;
  backend_.upload(addresses_.at("count"), &result.count, sizeof result.count);
  bind_root(*norm_);
  norm_->run();
  backend_.download(&norm, norm_->output(0), sizeof norm);
  backend_.copy(addresses_.at("scale"), norm_->output(1), kFloat);
  result.grad_norm = norm;
  return result;
}

void TrainStep::apply(double lr) {
  const int64_t step = ++steps_applied_;
  const auto rate = static_cast<float>(lr);
  set_step(step);
  backend_.upload(addresses_.at("lr"), &rate, sizeof rate);
  backend_.upload(static_cast<char*>(addresses_.at("lr_history")) + step % kLrHistory * kFloat, &rate,
                  sizeof rate);
  if (catch_up_sums_) {
    bind_root(*catch_up_sums_);
    catch_up_sums_->run();
  }
  bind_root(*update_, share_.part_of(layout_).begin);
  update_->run();
  if (statistics_) {
    statistics_->bind("sums", static_cast<char*>(sums_->slots()[0].dense->data()) + layout_.numel() * kFloat);
    statistics_->run();
  }
  if (ema_) {
    catch_up_all();
    ema_->run();
  }
  meet_holders("the update");
}

void TrainStep::meet_holders(const std::string& about) {
  if (!share_.is_shared()) return;
  const auto start = std::chrono::steady_clock::now();
  group_->host_barrier(about);
  meeting_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

StepResult TrainStep::run(double lr, const Loader& load) {
  const StepResult result = accumulate(load);
  apply(lr);
  return result;
}

// The root of the tree is in slot 0.
void TrainStep::bind_root(Executable& executable, int64_t first) {
  GradientSlot& root = sums_->slots()[0];
  const auto bind = [&](const std::string& name, void* data) {
    if (executable.graph().find(name).valid()) executable.bind(name, data);
  };
  bind("grads", static_cast<float*>(root.dense->data()) + first);
  for (size_t i = 0; i < tables_.size(); ++i) {
    bind(grad_ids_name(tables_[i].name), root.tables[i].ids->data());
    bind(grad_rows_name(tables_[i].name), root.tables[i].rows->data());
  }
}

void TrainStep::catch_up_all() {
  if (!catch_up_all_ || caught_up_ == steps_applied_) return;
  set_step(steps_applied_ + 1);
  catch_up_all_->run();
  caught_up_ = steps_applied_;
}

const TrainState& TrainStep::state() {
  catch_up_all();
  return state_;
}

void TrainStep::restored(int64_t steps_applied) {
  steps_applied_ = caught_up_ = steps_applied;
  state_.mark_rows(steps_applied);
}

std::vector<float> TrainStep::param(std::string_view name) {
  catch_up_all();
  const StateTensor& found = state_.param(name);
  std::vector<float> values(static_cast<size_t>(found.shape.numel()));
  backend_.download(values.data(), found.data, found.shape.numel() * kFloat);
  return values;
}

void TrainStep::set_param(std::string_view name, const std::vector<float>& values) {
  const StateTensor& found = state_.param(name);
  LOCKSTEP_CHECK(static_cast<int64_t>(values.size()) == found.shape.numel(), "values for {}", name);
  backend_.upload(found.data, values.data(), found.shape.numel() * kFloat);
}

std::vector<float> TrainStep::grad(std::string_view name) const {
  const StateTensor& found = state_.param(name);
  std::vector<float> values(static_cast<size_t>(found.shape.numel()), 0.0f);
  const GradientSlot& root = sums_->slots()[0];
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

std::string TrainStep::weights_sha256() { return sha256_of(backend_, state().model()); }

int64_t TrainStep::param_count() const {
  int64_t count = 0;
  for (const StateTensor& tensor : params()) count += tensor.shape.numel();
  return count;
}

int64_t TrainStep::planned_bytes() const {
  int64_t bytes = sums_->slots().bytes() + state_.bytes() + arena_->bytes();
  KernelMemory kernels;
  for (const Executable* executable : executables()) kernels += executable->plan().memory.kernels;
  for (const auto& buffer : buffers_) bytes += buffer->bytes();
  return bytes + kernels.bytes();
}

}  // namespace lockstep

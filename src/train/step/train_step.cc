#include "train/step/train_step.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include "base/error.h"
#include "graph/op_def.h"
#include "passes/bf16.h"
#include "train/state/group_memory.h"
#include "train/update/update.h"

namespace lockstep {
namespace {

constexpr int64_t kFloat = sizeof(float);
// The graph input that random ops take: (seed, position). Position counts microbatches from the start of the
// run.
constexpr std::string_view kRandomInput = "rng";

// Where the scalars of a step lie in one buffer of the device.
struct Scalars {
  float lr;
  float scale;
  int64_t seed;  // with the step behind it: what keys the draws of an update
  int64_t step;
  float lr_history[kLrHistory];
};

struct ReadBack {
  LossTotal total;
  float norm;
};

}  // namespace

TrainOptions options_in(const MeshGroups& groups, const Backend& backend, TrainOptions options) {
  options.mesh_rank = groups.rank;
  if (groups.data == nullptr) {
    options.zero = 0;  // alone, whatever the job will have
    return options;
  }
  options.rank = groups.data->rank();
  LOCKSTEP_CHECK(options.owners() == groups.owners()->size() || options.zero == 0,
                 "{} workers are to own the state, in a group of {}", options.owners(),
                 groups.owners()->size());
  if (backend.memory() == MemoryKind::kHost) options.host = groups.owners()->host();
  // All stages split their parameters, or none does.
  const auto all = groups.all->host();
  const bool one_host = all && all->count == groups.all->size();
  if (options.zero == 3 && groups.shape.splits_model() && !one_host) options.host = std::nullopt;
  if (options.zero == 3 && groups.part != nullptr && !groups.parts_on_hosts) options.host = std::nullopt;
  return options;
}

TrainStep::TrainStep(const Model& model, Backend& backend, const TrainOptions& options,
                     const MeshGroups& groups)
    : TrainStep(plan_training(model, backend, options_in(groups, backend, options)), model, backend,
                options_in(groups, backend, options), groups) {}

TrainStep::TrainStep(TrainPlans plans, const Model& model, Backend& backend, const TrainOptions& options,
                     const MeshGroups& groups)
    : backend_(backend),
      options_(options),
      compile_milliseconds_(plans.milliseconds),
      layout_(plans.layout),
      holders_(plans.holders),
      tables_(plans.tables),
      groups_(groups),
      group_(groups.data),
      owners_(groups.owners()),
      ownership_(options.ownership()),
      ways_(groups, backend, options),
      state_(
          backend, layout_, tables_, plans.frozen, options.optimizer, options.ema > 0, ownership_,
          [this](int64_t bytes) { return flat_memory(bytes); }, plans.whole, holders_, options.mesh_rank,
          plans.pieces),
      units_(std::move(plans.units)),
      messages_(backend),
      to_scalars_(backend, sizeof(int64_t)),
      result_(backend.allocate(sizeof(ReadBack), MemoryKind::kPinned)) {
  owned_ = ownership_.owned(layout_);
  make_phases(plans);
  if (plans.square_stride > 0)
    squares_ = std::make_unique<SquareGather>(holders_.is_split() ? *groups_.all : *owners_, backend_,
                                              plans.whole, holders_, ownership_, plans.square_stride);
  squared_ = holders_.is_split() ? squared_by(options.mesh_rank, layout_, holders_, ownership_) : owned_;
  make_sums();
  inputs_ =
      std::make_unique<StepInputs>(backend_, plans.pipeline ? *plans.pipeline->inputs : backward().graph());
  if (plans.pipeline) {
    const std::vector<Slice> parts = PipelineRunner::parts(*plans.pipeline, layout_, plans.stages);
    pipeline_ = std::make_unique<PipelineRunner>(std::move(*plans.pipeline), backend_, *groups_.pipeline,
                                                 layout_, state_, *inputs_, arena_);
    if (groups_.tensor != nullptr) pipeline_->bind_tensor_group(*groups_.tensor, ways_.tensor());
    sum_stages(parts);
  }
  allocate_scalars();
  bind_all();
  // Pieces that nobody else has, nobody can give.
  const bool draws = options.draws_weights || ownership_.splits_params();
  if (draws) state_.initialise(model, options.seed);
  // A slice may be of parameters that another worker of this host draws.
  const bool averages_others = ownership_.is_split();
  if (draws && !averages_others) state_.begin_averages();
  meet_holders("the first weights");
  if (draws && averages_others) state_.begin_averages();
}

void TrainStep::make_phases(TrainPlans& plans) {
  for (const Plan* plan : plans.all()) communication_bytes_ += plan->memory.communication;
  // Units are gathered there; those of a host copy them from each other where they can reach them.
  const bool reached =
      ownership_.splits_params() && backend_.memory() == MemoryKind::kHost && owners_->host();
  arena_ = reached ? peer_memory(*owners_, plans.arena_bytes()) : backend_.allocate(plans.arena_bytes());
  const auto executable = [&](const PlanHandle& plan) {
    auto made = plan ? std::make_unique<Executable>(std::move(*plan), backend_, arena_) : nullptr;
    if (made && groups_.tensor != nullptr)
      made->bind_group(name_of(MeshAxis::kTensor), *groups_.tensor, ways_.tensor());
    return made;
  };
  for (size_t i = 0; i < kPhases; ++i) phases_[i] = executable(plans.phases[i]);
  for (SlicePlans& slice : plans.slices)
    slices_.push_back({slice.slice, executable(slice.update), executable(slice.average)});
}

// Of the state. Where it is split between workers who reach each other's devices, it is parameters, which are
// gathered from there.
std::unique_ptr<Buffer> TrainStep::flat_memory(int64_t bytes) {
  if (ownership_.is_shared()) return host_memory(*owners_, bytes);
  if (!ways_.owners_are_direct() || !ownership_.is_split()) return backend_.allocate(bytes);
  gathered_ = ways_.owners()->allocate(std::max<int64_t>(bytes, 1));
  return std::make_unique<HeldBuffer>(gathered_);
}

void TrainStep::make_sums() {
  ReduceOptions reduce = options_.reduce;
  // Where several groups own everything, each slice has several owners, and all workers get all sums.
  reduce.owned = ownership_.is_split() && groups_.part == nullptr;
  const auto peers = [&] { return gathered_ ? ways_.owners()->open({std::move(gathered_)}) : nullptr; };
  if (ownership_.gathers())
    params_gather_ = std::make_unique<ParamGather>(*owners_, backend_, state_.flat_params(), layout_,
                                                   ownership_, ways_.owners(), peers());
  if (ownership_.splits_params())
    unit_gathers_ = std::make_unique<UnitGathers>(*owners_, backend_, state_.flat_params(), layout_,
                                                  ownership_, ways_.owners(), peers());
  if (ownership_.splits_gradients()) {
    const SumTree tree = SumTree::in_rounds(
        options_.leaves, options_.microbatches, *group_,
        {.leaves = options_.owned_leaves(), .workers = owners_->size(), .rank = owners_->rank()});
    const RoundSums::Groups groups{.owners = *owners_, .all = *group_, .replicas = groups_.replicas};
    rounds_ = std::make_unique<RoundSums>(backend_, layout_, ownership_, tree, groups, ways_.owners(),
                                          ways_.adders());
    if (phase(Phase::kAccumulate) != nullptr) leaf_ = backend_.allocate(layout_.sums_bytes());
    return;
  }
  sums_ = std::make_unique<LeafSums>(
      backend_, layout_, tables_,
      SumTree(options_.leaves, options_.microbatches, options_.reduce.order, group_), reduce, group_,
      ways_.adders(), make_residuals());
  if (phase(Phase::kAccumulate) != nullptr) lists_ = sums_->slots().make_lists();
}

void TrainStep::sum_stages(const std::vector<Slice>& parts) {
  if (unit_gathers_) pipeline_->gather_with(*unit_gathers_);
  if (!rounds_) {
    sums_->in_parts(parts, pipeline_->loss_part());
    stage_sums_ = std::make_unique<StageLeafSums>(*sums_);
    return;
  }
  leaf_ = backend_.allocate(layout_.sums_bytes());
  // Norms and updates run over the padding between parameters, which nobody writes.
  backend_.compute().zero(leaf_->data(), leaf_->bytes());
  stage_sums_ = std::make_unique<StageRoundSums>(*rounds_, layout_, leaf_->data(), pipeline_->stages());
}

float* TrainStep::make_residuals() {
  if (!has_feedback(options_.reduce.codec)) return nullptr;
  std::vector<LeafRange> by_rank;
  if (group_ == nullptr) by_rank.push_back({0, options_.leaves});
  for (int rank = 0; group_ != nullptr && rank < group_->size(); ++rank)
    by_rank.push_back(group_->split().range(rank));
  return state_.add_residuals(std::move(by_rank), group_ == nullptr ? 0 : group_->rank());
}

void TrainStep::forget_left_out() {
  if (!unapplied_) return;
  unapplied_ = false;
  state_.clear_residuals();
}

void TrainStep::bind_all() {
  const auto bind_scalars = [&](Executable& executable) {
    for (const GraphInput& input : executable.graph().inputs()) {
      const std::string& name = executable.graph().name(input.value);
      if (const auto found = addresses_.find(name); found != addresses_.end())
        executable.bind(name, found->second);
      else if (inputs_->has(name))
        executable.bind(name, inputs_->address(name));
    }
  };
  for (const auto& executable : phases_) {
    if (!executable) continue;
    state_.bind(*executable);
    bind_scalars(*executable);
  }
  for (const SliceUpdate& one : slices_) {
    int64_t first = 0;
    for (size_t i = 0; i < one.slice; ++i) first += owned_[i].size();
    for (Executable* executable : {one.update.get(), one.average.get()}) {
      if (executable == nullptr) continue;
      state_.bind_slice(*executable, owned_[one.slice], first);
      bind_scalars(*executable);
    }
  }
}

void TrainStep::enqueue(Phase which) {
  if (Executable* executable = phase(which)) executable->enqueue();
}

void TrainStep::allocate_scalars() {
  scalars_ = backend_.allocate(sizeof(Scalars));
  const auto at = [&](size_t offset) -> void* { return static_cast<char*>(scalars_->data()) + offset; };
  addresses_ = {{"lr", at(offsetof(Scalars, lr))},
                {"scale", at(offsetof(Scalars, scale))},
                {"step", at(offsetof(Scalars, step))},
                {"lr_history", at(offsetof(Scalars, lr_history))},
                {std::string(kUpdateRounding), at(offsetof(Scalars, seed))}};
  const auto seed = static_cast<int64_t>(options_.seed);
  backend_.upload(at(offsetof(Scalars, seed)), &seed, sizeof seed);
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
  Executable& executable = *phase(first ? Phase::kBackward : Phase::kAccumulate);
  if (first) sums_->slots().reset_lists(slot);
  bind_gradients(executable, target, first ? target.tables : lists_);
  Executable::RegionReady ready;
  if (sums_->wants_ready(microbatch)) ready = [this](int64_t bytes) { sums_->ready(bytes); };
  executable.enqueue(ready);
  if (!first) sums_->slots().add_lists(slot, lists_);
  sums_->totals().add(slot, executable.output(0), executable.output(1), first);
}

void TrainStep::set_step(int64_t step) { to_scalars_.send(addresses_.at("step"), &step, sizeof step); }

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
  load_microbatch(load, microbatch, step > 0 ? step : steps_applied_ + 1);
  LOCKSTEP_CHECK(!pipeline_, "a microbatch of a part of the model");
  if (rounds_) {
    if (leaf_) backward().bind_region(leaf_->data());
    gather_with(unit_reader_.get());
    return backward();
  }
  sums_->slots().reset_lists(0);
  bind_gradients(backward(), sums_->slots()[0], sums_->slots()[0].tables);
  return backward();
}

StepResult TrainStep::accumulate(const Loader& load, int64_t step, const Request& request) {
  LOCKSTEP_CHECK(load || options_.microbatches == 1, "{} microbatches need a loader", options_.microbatches);
  forget_left_out();
  unapplied_ = true;
  // A row may be left behind for at most as many steps as learning rates are remembered.
  if (steps_applied_ + 1 - caught_up_ >= kLrHistory) catch_up_all();
  // The rows that are read now must have reached the step before.
  set_step(steps_applied_ + 1);
  if (step == 0) step = steps_applied_ + 1;

  int64_t answered = 0;
  // Of a model that is split the answer goes to all with the parts of the norm.
  const Request among_data = holders_.is_split() ? Request{} : request;
  if (pipeline_)
    sum_pipeline(load, step);
  else
    answered = rounds_ ? sum_rounds(load, step, among_data) : sum_leaves(load, step, among_data);
  Executable& norm = *phase(Phase::kNorm);
  if (holders_.is_split()) answered = request ? request() : 0;
  if (squares_) answered = sum_squares(answered);
  if (sums_) bind_root(norm);
  norm.bind("count", totals().count(0));
  norm.enqueue();
  backend_.compute().copy(addresses_.at("scale"), norm.output(1), kFloat);
  return read_result(answered);
}

void TrainStep::load_microbatch(const Loader& load, int64_t microbatch, int64_t step) {
  if (load) load(microbatch);
  set_random(microbatch, step);
  inputs_->submit();
  if (rows_are_behind()) enqueue(Phase::kCatchUp);
}

int64_t TrainStep::sum_leaves(const Loader& load, int64_t step, const Request& request) {
  const SumTree& tree = sums_->tree();
  sums_->begin(step, steps_applied_ + 1);
  // A leaf's gradients join what it has not sent, which a checkpoint may still be reading.
  if (has_feedback(options_.reduce.codec)) state_.gate().wait();
  for (int64_t i = 0; i < tree.microbatches(); ++i) {
    const int64_t m = tree.microbatch(i);
    load_microbatch(load, m, step);
    run_backward(m);
    if (tree.ends_leaf(m)) sums_->push();
  }
  // Once the sums have met, others update their parts of a state that is held together.
  if (ownership_.is_shared()) state_.gate().wait();
  return sums_->finish(request ? request() : 0);
}

int64_t TrainStep::sum_rounds(const Loader& load, int64_t step, const Request& request) {
  gather_with(unit_gathers_.get());
  for (int64_t round = 0; round < rounds_->rounds(); ++round) {
    for (int64_t n = 0; n < rounds_->tree().microbatches_per_leaf(); ++n) run_in_round(round, n, load, step);
    rounds_->finish_round(round);
  }
  // Once the sums have met, others update their parts of a state that is held together.
  if (ownership_.is_shared()) state_.gate().wait();
  return rounds_->finish(request ? request() : 0);
}

void TrainStep::run_in_round(int64_t round, int64_t n, const Loader& load, int64_t step) {
  const SumTree& tree = rounds_->tree();
  const bool has_leaf = round < tree.own().size();
  if (!has_leaf && !unit_gathers_) return;
  Executable& executable = *phase(n == 0 ? Phase::kBackward : Phase::kAccumulate);
  if (leaf_) executable.bind_region(leaf_->data());
  RoundSums::At at;
  if (has_leaf) at = [&](int64_t offset) { return executable.region_at(offset); };
  Executable::RegionReady ready;
  if (n + 1 == tree.microbatches_per_leaf()) ready = [&](int64_t bytes) { rounds_->ready(round, bytes, at); };
  if (!has_leaf) return executable.follow(ready);
  load_microbatch(load, tree.microbatch(round * tree.microbatches_per_leaf() + n), step);
  executable.enqueue(ready);
  rounds_->totals().add(round, executable.output(0), executable.output(1), n == 0);
}

void TrainStep::gather_with(UnitSource* source) {
  if (source == nullptr) return;
  for (const Phase which : {Phase::kBackward, Phase::kAccumulate})
    if (Executable* executable = phase(which)) executable->gather_with(*source);
}

void TrainStep::renew_copies() {
  const auto start = std::chrono::steady_clock::now();
  const int own = groups_.coordinate(MeshAxis::kPipeline);
  for (const auto& [name, readers] : holders_.copies()) {
    if (!holders_.is_with(groups_.rank, name)) continue;
    const int holder = holders_.pipeline_of(name);
    const StateTensor& tensor = state_.entry(name);
    if (tensor.flat_offset >= 0) {
      renew_copy(tensor, holder, readers);
      continue;
    }
    if (readers.contains(own))
      messages_.receive(*groups_.pipeline, holder, state_.copy_of(name), tensor.bytes());
    if (own != holder) continue;
    for (const int reader : readers) messages_.send(*groups_.pipeline, reader, tensor.data, tensor.bytes());
  }
  meeting_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of one that the workers of a stage own pieces of: each gives its own to its pipeline, and those who read it
// give them to each other.
void TrainStep::renew_copy(const StateTensor& tensor, int holder, const std::set<int>& readers) {
  const int own = groups_.coordinate(MeshAxis::kPipeline), data = groups_.coordinate(MeshAxis::kData);
  const bool reads = readers.contains(own);
  const int64_t element = size_of(tensor.dtype);
  if (own == holder)
    for (const int reader : readers)
      for (const StatePiece& piece : tensor.pieces)
        messages_.send(*groups_.pipeline, reader, piece.data, piece.count * element);
  if (!reads) return;
  auto* const copy = static_cast<std::byte*>(state_.copy_of(tensor.name));
  const RankLine line = groups_.shape.line(
      MeshAxis::kData, groups_.shape.line(MeshAxis::kPipeline, groups_.rank).number(holder));
  for (int rank = 0; rank < line.count; ++rank)
    for (const Slice& held : state_.held_by(line.number(rank), tensor, TrainState::Held::kAll))
      if (rank == data)
        messages_.receive(*groups_.pipeline, holder, copy + held.begin * element, held.size() * element);
  for (int rank = 0; rank < line.count; ++rank)
    for (const Slice& held : state_.held_by(line.number(rank), tensor, TrainState::Held::kAll))
      messages_.broadcast(*group_, rank, copy + held.begin * element, held.size() * element, "a tied weight");
}

void TrainStep::sum_pipeline(const Loader& load, int64_t step) {
  renew_copies();
  pipeline_->run(*stage_sums_, [&](int64_t microbatch) { load_microbatch(load, microbatch, step); });
  if (rounds_)
    rounds_->finish_stages();
  else
    sums_->exchange_parts();
  // Once the sums have met, others update their parts of a state that is held together.
  if (ownership_.is_shared()) state_.gate().wait();
  if (rounds_)
    rounds_->finish(0);
  else
    sums_->finish();
}

void* TrainStep::root_at(int64_t element) const {
  if (!rounds_) return sums_->slots().at(0, element);
  for (size_t i = 0; i < owned_.size(); ++i)
    if (owned_[i].begin <= element && element < owned_[i].end)
      return static_cast<char*>(rounds_->root(i)) + (element - owned_[i].begin) * size_of(layout_.dtype());
  throw InternalError("element {} is not owned here", element);
}

void* TrainStep::root_of(size_t slice) const {
  return rounds_ ? rounds_->root(slice) : sums_->slots().at(0, owned_[slice].begin);
}

int64_t TrainStep::sum_squares(int64_t request) {
  Executable* const own = phase(Phase::kSquares);
  if (own != nullptr) {
    for (size_t i = 0; i < squared_.size(); ++i)
      if (squared_[i].size() > 0) own->bind(piece_name(i), root_at(squared_[i].begin));
    own->enqueue();
  }
  const auto start = std::chrono::steady_clock::now();
  StepTotals totals{.request = request};
  if (pipeline_) {
    const LossTotal mine = this->totals().read(0);
    totals = {mine.loss, mine.count, request};
  }
  totals = squares_->run(own == nullptr ? nullptr : own->output(0), totals);
  if (pipeline_) this->totals().write(0, {totals.loss, totals.count});
  meeting_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  phase(Phase::kNorm)->bind("squares", squares_->squares());
  return holders_.is_split() ? totals.request : request;
}

// A bucket's parameters are gathered while those of the next are updated.
void TrainStep::update_slices() {
  state_.gate().wait();
  auto next = slices_.begin();
  const int64_t buckets = static_cast<int64_t>(owned_.size());
  for (int64_t bucket = 0; bucket < buckets; ++bucket) {
    if (next != slices_.end() && static_cast<int64_t>(next->slice) == bucket) {
      next->update->bind("grads", root_of(next->slice));
      next->update->enqueue();
      if (next->average) next->average->enqueue();
      ++next;
    }
    if (params_gather_) params_gather_->start(bucket);
  }
  if (!params_gather_) return;
  const auto start = std::chrono::steady_clock::now();
  params_gather_->finish();
  meeting_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

StepResult TrainStep::read_result(int64_t request) {
  auto* const read = static_cast<ReadBack*>(result_->data());
  Stream& stream = backend_.compute();
  stream.copy(&read->total.loss, totals().loss(0), sizeof read->total.loss);
  stream.copy(&read->total.count, totals().count(0), sizeof read->total.count);
  stream.copy(&read->norm, phase(Phase::kNorm)->output(0), sizeof read->norm);
  stream.synchronize();
  const auto [total, norm] = *read;
  return {.loss = static_cast<double>(total.loss) / static_cast<double>(std::max<int64_t>(total.count, 1)),
          .count = total.count,
          .grad_norm = norm,
          .request = request};
}

void TrainStep::apply(double lr) {
  unapplied_ = false;
  const int64_t step = ++steps_applied_;
  const auto rate = static_cast<float>(lr);
  set_step(step);
  to_scalars_.send(addresses_.at("lr"), &rate, sizeof rate);
  to_scalars_.send(static_cast<char*>(addresses_.at("lr_history")) + step % kLrHistory * kFloat, &rate,
                   sizeof rate);
  if (Executable* rows = phase(Phase::kCatchUpSums)) {
    bind_root(*rows);
    rows->enqueue();
  }
  if (ownership_.is_split()) update_slices();
  if (Executable* const whole = phase(Phase::kUpdate)) {
    bind_root(*whole, owned_[0].begin);
    whole->enqueue();
  }
  if (Executable* statistics = phase(Phase::kStatistics)) {
    statistics->bind("sums", sums_->slots().at(0, layout_.numel()));
    statistics->enqueue();
  }
  if (phase(Phase::kAverage) != nullptr) {
    catch_up_all();
    enqueue(Phase::kAverage);
  }
  meet_holders("the update");
}

// They share memory of the host, so that all has run by now.
void TrainStep::meet_holders(const std::string& about) {
  if (!ownership_.is_shared()) return;
  const auto start = std::chrono::steady_clock::now();
  owners_->host_barrier(about);
  meeting_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

float TrainStep::update_scale() const {
  float scale = 0;
  backend_.download(&scale, addresses_.at("scale"), sizeof scale);
  return scale;
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
  bind("grads", sums_->slots().at(0, first));
  for (size_t i = 0; i < tables_.size(); ++i) {
    bind(grad_ids_name(tables_[i].name), root.tables[i].ids->data());
    bind(grad_rows_name(tables_[i].name), root.tables[i].rows->data());
  }
}

void TrainStep::catch_up_all() {
  if (phase(Phase::kCatchUpAll) == nullptr || caught_up_ == steps_applied_) return;
  set_step(steps_applied_ + 1);
  enqueue(Phase::kCatchUpAll);
  caught_up_ = steps_applied_;
}

const TrainState& TrainStep::state() {
  forget_left_out();
  catch_up_all();
  return state_;
}

void TrainStep::restored(int64_t steps_applied) {
  unapplied_ = false;
  steps_applied_ = caught_up_ = steps_applied;
  state_.mark_rows(steps_applied);
}

void TrainStep::split_with(SplitTensors split) {
  split_ = std::move(split);
  if (!units_.empty())
    unit_reader_ = std::make_unique<UnitReader>(
        backend_, units_, [this](std::string_view name) -> const StateTensor& { return state_.param(name); },
        split_.read);
}

int64_t TrainStep::param_count() const {
  int64_t count = 0;
  for (const StateTensor& tensor : params()) count += tensor.shape.numel();
  return count;
}

int64_t TrainStep::planned_bytes() const {
  int64_t bytes = state_.bytes() + arena_->bytes() + inputs_->device_bytes() + scalars_->bytes();
  bytes += rounds_ ? rounds_->bytes() : sums_->bytes();
  if (leaf_) bytes += leaf_->bytes();
  bytes += ways_.tensor() != nullptr ? ways_.tensor()->bytes() : communication_bytes_;
  if (squares_) bytes += squares_->bytes();
  if (params_gather_) bytes += params_gather_->bytes();
  if (unit_gathers_) bytes += unit_gathers_->bytes();
  KernelMemory kernels;
  if (pipeline_) {
    bytes += pipeline_->bytes();
    kernels += pipeline_->kernels();
  }
  for (const auto& executable : phases_)
    if (executable) kernels += executable->plan().memory.kernels;
  for (const SliceUpdate& one : slices_)
    for (const Executable* executable : {one.update.get(), one.average.get()})
      if (executable != nullptr) kernels += executable->plan().memory.kernels;
  return bytes + kernels.bytes();
}

}  // namespace lockstep

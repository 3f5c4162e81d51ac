#include "train/state/train_state.h"

#include <algorithm>
#include <iterator>

#include "base/convert.h"
#include "base/error.h"
#include "graph/op_def.h"
#include "train/state/initial_params.h"
#include "train/update/ema.h"
#include "train/update/update.h"

namespace lockstep {
namespace {

constexpr int64_t kFloat = sizeof(float);
// Host copies are made in pieces: one of the largest tensor would be the peak of the whole run.
constexpr int64_t kPiece = 1 << 16;  // elements

char* at(void* base, int64_t elements, DType dtype = DType::kF32) {
  return static_cast<char*>(base) + elements * size_of(dtype);
}

void widen(DType dtype, std::span<const std::byte> stored, std::vector<float>& values) {
  values.resize(stored.size() / static_cast<size_t>(size_of(dtype)));
  convert_elements(dtype, stored.data(), DType::kF32, values.data(), static_cast<int64_t>(values.size()));
}

}  // namespace

TrainState::TrainState(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
                       const std::vector<FrozenParam>& frozen, const OptimizerSettings& optimizer,
                       bool averages, const Ownership& ownership, const Allocate& allocate_flat)
    : TrainState(backend, layout, tables, frozen, optimizer, averages, ownership, allocate_flat, layout, {},
                 0) {}

TrainState::TrainState(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
                       const std::vector<FrozenParam>& frozen, const OptimizerSettings& optimizer,
                       bool averages, const Ownership& ownership, const Allocate& allocate_flat,
                       const FlatLayout& whole, const ModelHolders& holders, int mesh_rank,
                       const LeafPieces& pieces)
    : backend_(backend),
      tables_(tables),
      averaging_(averages),
      state_memory_(optimizer.offloaded ? MemoryKind::kPinned : backend.memory()),
      ownership_(ownership),
      layout_(layout),
      owned_(ownership.owned(layout)),
      flat_memory_(allocate_flat),
      whole_(whole),
      holders_(holders),
      mesh_rank_(mesh_rank),
      pieces_(pieces) {
  add_flat_tensors(layout, optimizer);
  add_tables(tables);
  add_statistics(layout);
  add_frozen(frozen);
  if (holders_.is_split()) add_tensors_elsewhere(optimizer);
  for (const std::vector<StateTensor>* list : {&params_, &frozen_})
    std::ranges::copy_if(*list, std::back_inserter(leaves_),
                         [&](const StateTensor& tensor) { return piece(tensor.name) != nullptr; });
  for (std::vector<StateTensor>* list : {&params_, &optimizer_, &averages_, &frozen_}) *list = joined(*list);
  model_ = params_;
  model_.insert(model_.end(), frozen_.begin(), frozen_.end());
  model_.insert(model_.end(), statistics_.begin(), statistics_.end());
}

void* TrainState::allocate(std::string_view name, int64_t bytes) {
  buffers_.push_back(backend_.allocate(bytes));
  return addresses_[std::string(name)] = buffers_.back()->data();
}

void* TrainState::allocate_flat(std::string_view name, int64_t numel, DType dtype) {
  flat_buffers_.push_back(flat_memory_(numel * size_of(dtype)));
  return add_flat(name, dtype, flat_buffers_.back()->data());
}

void* TrainState::allocate_state(std::string_view name, int64_t numel, DType dtype) {
  if (state_memory_ == backend_.memory()) return allocate_flat(name, numel, dtype);
  offloaded_.push_back(backend_.allocate(numel * size_of(dtype), state_memory_));
  return add_flat(name, dtype, offloaded_.back()->data());
}

// Its address is bound to the graphs that update.
void* TrainState::add_flat(std::string_view name, DType dtype, void* base) {
  flat_[std::string(name)] = {base, dtype, false};
  if (!ownership_.is_split()) addresses_[std::string(name)] = at(base, owned_[0].begin, dtype);
  return base;
}

void* TrainState::allocate_owned(std::string_view name, DType dtype) {
  auto& buffers = state_memory_ == backend_.memory() ? buffers_ : offloaded_;
  buffers.push_back(backend_.allocate(numel(owned_) * size_of(dtype), state_memory_));
  flat_[std::string(name)] = {buffers.back()->data(), dtype, true};
  return buffers.back()->data();
}

void TrainState::add_flat_tensors(const FlatLayout& layout, const OptimizerSettings& optimizer) {
  const bool fills = ownership_.fills();
  const DType dtype = layout.dtype();
  const bool whole = !ownership_.splits_params();
  if (!whole) {
    flat_buffers_.push_back(flat_memory_(numel(owned_) * size_of(dtype)));
    flat_["params"] = {flat_buffers_.back()->data(), dtype, true};
  }
  void* const params = whole ? allocate_flat("params", layout.numel(), dtype) : flat_buffers_.back()->data();
  for (const FlatEntry& entry : layout.entries()) {
    if (!whole) {
      params_.push_back(split_tensor(entry.name, dtype, entry, params));
      continue;
    }
    addresses_[entry.name] = at(params, entry.offset, dtype);
    params_.push_back({entry.name, dtype, entry.shape, at(params, entry.offset, dtype), fills});
  }
  if (ownership_.is_split()) return add_split_tensors(layout, optimizer);
  std::unordered_map<std::string, void*> state;
  for (const StateBuffer& buffer : optimizer_state(layout, optimizer))
    state[buffer.name] = allocate_state(buffer.name, buffer.numel, buffer.dtype);
  for (const StatePart& part : optimizer_parts(layout, optimizer))
    optimizer_.push_back({fmt::format("{}.{}", part.buffer, part.param), part.dtype, part.shape,
                          at(state.at(part.buffer), part.offset, part.dtype), fills});
  if (!averaging_) return;
  void* const averages = allocate_state("average", layout.numel(), DType::kF32);
  for (const FlatEntry& entry : layout.entries())
    averages_.push_back(
        {average_name(entry.name), DType::kF32, entry.shape, at(averages, entry.offset), fills});
}

void TrainState::add_split_tensors(const FlatLayout& layout, const OptimizerSettings& optimizer) {
  LOCKSTEP_CHECK(updates_elements(optimizer), "{} needs whole tensors", optimizer.name);
  for (const StateBuffer& buffer : optimizer_state(layout, optimizer)) {
    void* const base = allocate_owned(buffer.name, buffer.dtype);
    for (const FlatEntry& entry : layout.entries())
      optimizer_.push_back(
          split_tensor(fmt::format("{}.{}", buffer.name, entry.name), buffer.dtype, entry, base));
  }
  if (!averaging_) return;
  void* const averages = allocate_owned("average", DType::kF32);
  for (const FlatEntry& entry : layout.entries())
    averages_.push_back(split_tensor(average_name(entry.name), DType::kF32, entry, averages));
}

StateTensor TrainState::split_tensor(std::string name, DType dtype, const FlatEntry& entry,
                                     void* base) const {
  StateTensor tensor{std::move(name), dtype, entry.shape, nullptr, true, {}, entry.offset};
  int64_t held = 0;
  for (const Slice& slice : owned_) {
    const int64_t begin = std::max(slice.begin, entry.offset);
    const int64_t end = std::min(slice.end, entry.offset + entry.shape.numel());
    if (begin < end)
      tensor.pieces.push_back(
          {begin - entry.offset, end - begin, at(base, held + begin - slice.begin, dtype)});
    held += slice.size();
  }
  return tensor;
}

bool TrainState::is_held_here(const StateTensor& tensor) const {
  if (tensor.held_with.empty() || holders_.holds(mesh_rank_, tensor.held_with)) return true;
  return std::ranges::any_of(pieces_, [&](const auto& one) {
    return one.second.param == tensor.held_with && holders_.holds(mesh_rank_, one.first);
  });
}

std::vector<Slice> TrainState::held_by(int rank, const StateTensor& tensor, Held which) const {
  if (tensor.leaf >= 0) {
    const LeafRange leaves = leaves_by_rank_[static_cast<size_t>(rank)];
    const bool has = tensor.leaf >= leaves.begin && tensor.leaf < leaves.end;
    return has ? std::vector<Slice>{{0, tensor.shape.numel()}} : std::vector<Slice>{};
  }
  const auto is_leaf = [&](const auto& one) { return one.second.param == tensor.held_with; };
  if (std::ranges::none_of(pieces_, is_leaf))
    return held_entry(rank, tensor.held_with, tensor.shape.numel(), tensor.flat_offset, which);
  std::vector<Slice> held;
  for (const auto& [name, piece] : pieces_) {
    if (piece.param != tensor.held_with) continue;
    for (const Slice& part : held_entry(rank, name, piece.shape().numel(), tensor.flat_offset, which))
      piece.for_runs([&](int64_t first, int64_t at, int64_t count) {
        const int64_t begin = std::max(part.begin, at), end = std::min(part.end, at + count);
        if (begin < end) held.push_back({first + begin - at, first + end - at});
      });
  }
  std::ranges::sort(held, {}, &Slice::begin);
  return held;
}

std::vector<Slice> TrainState::held_entry(int rank, const std::string& entry, int64_t numel, int64_t offset,
                                          Held which) const {
  int data_rank = rank;
  std::optional<FlatLayout> layout;
  if (!entry.empty()) {
    if (which == Held::kAsked ? !holders_.speaks_for(rank, entry) : !holders_.holds(rank, entry)) return {};
    if (holders_.is_split()) data_rank = holders_.mesh().coordinate(MeshAxis::kData, rank);
    if (!ownership_.is_split() || offset < 0)
      return data_rank == 0 ? std::vector<Slice>{{0, numel}} : std::vector<Slice>{};
    layout = holders_.layout_of(rank, whole_);
    offset = layout->find(entry).offset;
  }
  // The first of several groups that each own all of it are asked.
  if (ownership_.is_split() && data_rank >= ownership_.workers()) return {};
  std::vector<Slice> held;
  for (const Slice& slice : ownership_.owned_by(data_rank, layout ? *layout : layout_)) {
    const int64_t begin = std::max<int64_t>(0, slice.begin - offset);
    const int64_t end = std::min(numel, slice.end - offset);
    if (begin < end) held.push_back({begin, end});
  }
  return held;
}

std::vector<StateTensor> TrainState::joined(const std::vector<StateTensor>& tensors) const {
  if (pieces_.empty()) return tensors;
  std::vector<StateTensor> result;
  std::unordered_map<std::string, size_t> index;
  for (const StateTensor& tensor : tensors) {
    // Beside the parameter "w.leaf0" there is "moment1.w.leaf0".
    size_t prefix = 0;
    const LeafPiece* leaf = piece(tensor.name);
    if (leaf == nullptr) {
      prefix = tensor.name.find('.') + 1;
      leaf = piece(tensor.name.substr(prefix));
    }
    if (leaf == nullptr) {
      result.push_back(tensor);
      continue;
    }
    const std::string name = tensor.name.substr(0, prefix) + leaf->param;
    const auto [known, fresh] = index.emplace(name, result.size());
    if (fresh)
      result.push_back(
          {name, tensor.dtype, leaf->whole, nullptr, false, {}, tensor.flat_offset, leaf->param});
    StateTensor& all = result[known->second];
    const std::vector<StatePiece> here = tensor.data != nullptr
                                             ? std::vector<StatePiece>{{0, tensor.shape.numel(), tensor.data}}
                                             : tensor.pieces;
    all.filled_here |= tensor.filled_here && !here.empty();
    for (const StatePiece& own : here)
      leaf->for_runs([&](int64_t first, int64_t from, int64_t count) {
        const int64_t begin = std::max(own.first, from), end = std::min(own.first + own.count, from + count);
        if (begin < end)
          all.pieces.push_back(
              {first + begin - from, end - begin, at(own.data, begin - own.first, tensor.dtype)});
      });
  }
  for (StateTensor& tensor : result) std::ranges::sort(tensor.pieces, {}, &StatePiece::first);
  return result;
}

// In the order of the whole layout, on every worker.
void TrainState::add_tensors_elsewhere(const OptimizerSettings& optimizer) {
  const auto take = [](std::vector<StateTensor>& from, StateTensor all, const std::string& param) {
    const auto found = std::ranges::find(from, all.name, &StateTensor::name);
    if (found != from.end()) {
      if (found->data != nullptr) found->pieces = {{0, found->shape.numel(), found->data}};
      all = *found;
    }
    all.filled_here = all.filled_here && !all.pieces.empty();
    all.held_with = param;
    return all;
  };
  std::vector<StateTensor> params, state, averages, frozen;
  const bool split = ownership_.is_split();
  for (const FlatEntry& entry : whole_.entries()) {
    params.push_back(take(
        params_,
        {entry.name, whole_.dtype(), entry.shape, nullptr, true, {}, ownership_.splits_params() ? 0 : -1},
        entry.name));
    if (averaging_)
      averages.push_back(take(
          averages_, {average_name(entry.name), DType::kF32, entry.shape, nullptr, true, {}, split ? 0 : -1},
          entry.name));
  }
  for (const StatePart& part : optimizer_parts(whole_, optimizer))
    state.push_back(take(optimizer_,
                         {fmt::format("{}.{}", part.buffer, part.param),
                          part.dtype,
                          part.shape,
                          nullptr,
                          true,
                          {},
                          split ? 0 : -1},
                         part.param));
  for (StateTensor& tensor : frozen_) {
    const std::string name = tensor.name;
    frozen.push_back(take(frozen_, tensor, name));
  }
  params_ = std::move(params);
  optimizer_ = std::move(state);
  averages_ = std::move(averages);
  frozen_ = std::move(frozen);
  for (const std::vector<StateTensor>* tensors : {&params_, &frozen_})
    for (const StateTensor& tensor : *tensors)
      if (holders_.has_copy(mesh_rank_, tensor.name)) allocate(tensor.name, tensor.bytes());
}

const StateTensor& TrainState::entry(const std::string& name) const {
  const auto leaf = std::ranges::find(leaves_, name, &StateTensor::name);
  return leaf != leaves_.end() ? *leaf : param(name);
}

void* TrainState::copy_of(const std::string& name) const {
  return holders_.has_copy(mesh_rank_, name) ? addresses_.at(name) : nullptr;
}

void TrainState::add_tables(const std::vector<RowTable>& tables) {
  for (const RowTable& table : tables) {
    const int64_t bytes = table.table.numel() * kFloat;
    params_.push_back({table.name, DType::kF32, table.table, allocate(table.name, bytes)});
    for (const std::string& name : {moment1_name(table.name), moment2_name(table.name)})
      optimizer_.push_back({name, DType::kF32, table.table, allocate(name, bytes)});
    allocate(last_step_name(table.name), table.table[0] * size_of(DType::kI32));
    if (!averaging_) continue;
    const std::string average = average_name(table.name);
    averages_.push_back({average, DType::kF32, table.table, allocate(average, bytes)});
  }
}

// The graph of a microbatch has inputs of these names too, for its own statistics; so only the whole buffer
// is there to bind.
void TrainState::add_statistics(const FlatLayout& layout) {
  if (layout.statistics_numel() == 0) return;
  void* running = allocate("statistics", layout.statistics_numel() * kFloat);
  for (const FlatEntry& entry : layout.statistics())
    statistics_.push_back({entry.name, DType::kF32, entry.shape, at(running, entry.offset - layout.numel())});
}

void TrainState::add_frozen(const std::vector<FrozenParam>& frozen) {
  for (const FrozenParam& param : frozen)
    frozen_.push_back(
        {param.name, param.type.dtype, param.type.shape,
         holders_.holds(mesh_rank_, param.name) ? allocate(param.name, param.type.bytes()) : nullptr});
}

void TrainState::initialise(const Model& model, uint64_t seed) {
  std::vector<StateTensor> drawn;
  std::copy_if(params_.begin(), params_.end(), std::back_inserter(drawn),
               [](const StateTensor& tensor) { return tensor.filled_here; });
  std::ranges::copy_if(frozen_, std::back_inserter(drawn), [](const StateTensor& tensor) {
    return tensor.data != nullptr || !tensor.pieces.empty();
  });
  draw_params(backend_, drawn, model.params, seed);
  for (const StateTensor& tensor : statistics_) {
    const auto init = std::find_if(model.statistics.begin(), model.statistics.end(),
                                   [&](const StatisticInit& s) { return s.name == tensor.name; });
    LOCKSTEP_CHECK(init != model.statistics.end(), "statistic {} has no start", tensor.name);
    const std::vector<float> piece(static_cast<size_t>(tensor.shape.numel()), init->start);
    backend_.upload(tensor.data, piece.data(), tensor.bytes());
  }
}

void TrainState::begin_averages() const {
  for (size_t i = 0; i < averages_.size(); ++i)
    if (averages_[i].filled_here) begin_average(averages_[i], params_[i]);
}

void TrainState::begin_average(const StateTensor& average, const StateTensor& param) const {
  std::vector<std::byte> stored;
  std::vector<float> values;
  const std::vector<StatePiece> pieces = pieces_of(average);
  for (const StatePiece& piece : pieces) {
    // Where parameters are split, they are as averages, or less.
    void* from = param.is_whole() ? at(param.data, piece.first, param.dtype) : nullptr;
    if (!param.is_whole())
      for_pieces(param, {piece.first, piece.first + piece.count},
                 [&](Slice, std::byte* address) { from = address; });
    if (average.dtype == param.dtype) {
      backend_.copy(piece.data, from, piece.count * size_of(param.dtype));
      continue;
    }
    for (int64_t done = 0; done < piece.count; done += kPiece) {
      const int64_t count = std::min(kPiece, piece.count - done);
      stored.resize(static_cast<size_t>(count * size_of(param.dtype)));
      backend_.download(stored.data(), at(from, done, param.dtype), static_cast<int64_t>(stored.size()));
      widen(param.dtype, stored, values);
      backend_.upload(at(piece.data, done), values.data(), count * kFloat);
    }
  }
}

const StateTensor& TrainState::param(std::string_view name) const {
  for (const StateTensor& tensor : params_)
    if (tensor.name == name) return tensor;
  for (const StateTensor& tensor : frozen_)
    if (tensor.name == name) return tensor;
  throw UserError("the model has no parameter {}", name);
}

const StateTensor& TrainState::evaluated_tensor(std::string_view name) const {
  for (const StateTensor& tensor : statistics_)
    if (tensor.name == name) return tensor;
  for (const StateTensor& tensor : frozen_)
    if (tensor.name == name) return tensor;
  const StateTensor& found = param(name);
  return averaging_ ? averages_[static_cast<size_t>(&found - params_.data())] : found;
}

void* TrainState::evaluated(std::string_view name) const {
  const StateTensor& tensor = evaluated_tensor(name);
  LOCKSTEP_CHECK(tensor.is_whole(), "{} is split", tensor.name);
  return tensor.data;
}

void TrainState::mark_rows(int64_t step) {
  gate_.wait();
  for (const RowTable& table : tables_) {
    const std::vector<int32_t> steps(static_cast<size_t>(table.table[0]), static_cast<int32_t>(step));
    backend_.upload(addresses_.at(last_step_name(table.name)), steps.data(),
                    static_cast<int64_t>(steps.size() * sizeof(int32_t)));
  }
}

void TrainState::bind(Executable& executable) const {
  for (const GraphInput& input : executable.graph().inputs()) {
    const auto found = addresses_.find(executable.graph().name(input.value));
    if (found != addresses_.end()) executable.bind(found->first, found->second);
  }
  const Graph& graph = executable.graph();
  const bool updates = std::ranges::any_of(graph.outputs(), [&](const GraphOutput& output) {
    return output.target.valid() && addresses_.contains(graph.name(output.target));
  });
  if (updates) wait_at_gate(executable);
}

void TrainState::bind_slice(Executable& executable, Slice slice, int64_t first) const {
  for (const GraphInput& input : executable.graph().inputs()) {
    const auto found = flat_.find(executable.graph().name(input.value));
    if (found == flat_.end()) continue;
    const Flat& flat = found->second;
    executable.bind(found->first, at(flat.base, flat.split ? first : slice.begin, flat.dtype));
  }
  wait_at_gate(executable);
}

void TrainState::wait_at_gate(Executable& executable) const {
  executable.before_run([gate = gate_]() mutable { gate.wait(); });
}

float* TrainState::add_residuals(std::vector<LeafRange> by_rank, int rank) {
  leaves_by_rank_ = std::move(by_rank);
  const LeafRange own = leaves_by_rank_[static_cast<size_t>(rank)];
  buffers_.push_back(backend_.allocate(own.size() * layout_.numel() * kFloat));
  residual_memory_ = buffers_.back().get();
  auto* const base = static_cast<float*>(residual_memory_->data());
  for (int64_t leaf = 0; leaf < leaves_by_rank_.back().end; ++leaf)
    for (const FlatEntry& entry : layout_.entries()) {
      StateTensor tensor{fmt::format("residual.{}.{}", leaf, entry.name), DType::kF32, entry.shape};
      tensor.leaf = leaf;
      float* const here = leaf < own.begin || leaf >= own.end
                              ? nullptr
                              : base + (leaf - own.begin) * layout_.numel() + entry.offset;
      if (leaves_by_rank_.size() == 1)
        tensor.data = here;
      else if (here != nullptr)
        tensor.pieces = {{0, entry.shape.numel(), here}};
      residuals_.push_back(std::move(tensor));
    }
  return base;
}

void TrainState::clear_residuals() const {
  if (residual_memory_ == nullptr) return;
  gate_.wait();
  backend_.compute().zero(residual_memory_->data(), residual_memory_->bytes());
}

int64_t TrainState::bytes() const {
  int64_t own = 0, together = 0;
  for (const auto& buffer : buffers_) own += buffer->bytes();
  for (const auto& buffer : flat_buffers_) together += buffer->bytes();
  return own + together / ownership_.owners();
}

std::vector<StatePiece> pieces_of(const StateTensor& tensor) {
  if (tensor.is_whole()) return {{0, tensor.shape.numel(), tensor.data}};
  return tensor.pieces;
}

}  // namespace lockstep

// TrainState: what a run keeps from step to step, in device memory: parameters, running statistics, optimizer
// state and moving averages, in flat buffers by the layout; tables with row gradients beside them in buffers
// of their own.
//
// Graph inputs find their buffers by name. For checkpoints and hashes the same bytes are seen as full logical
// tensors: parameters and statistics by their names, the optimizer's by its buffer and the parameter
// ("moment1.wte.weight"), the averages as "average.wte.weight", what leaves have not sent yet of their
// gradients (train/sums/leaf_residuals.h) as "residual.3.wte.weight".
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "comm/leaf_range.h"
#include "model/tensor_leaves.h"
#include "passes/row_gradients.h"
#include "runtime/executable.h"
#include "runtime/flat.h"
#include "train/state/model_holders.h"
#include "train/state/ownership.h"
#include "train/state/state_gate.h"

namespace lockstep {

// Some elements of a tensor that this worker owns.
struct StatePiece {
  int64_t first = 0;
  int64_t count = 0;
  void* data = nullptr;  // on the device
};

struct StateTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  void* data = nullptr;                 // on the device; null where it is split
  bool filled_here = true;              // at the start; false where another worker of this host does it
  std::vector<StatePiece> pieces = {};  // of one that is split: in order, what of it is here
  int64_t flat_offset = -1;             // of one that is split: of its first element in the layout
  // Of one that other workers have no part of, or this one: the parameter whose holders hold it too. Seen by
  // all as split.
  std::string held_with = {};

  // Of what a leaf of the canonical tree has not sent yet: its number. Held by who has the leaf.
  int64_t leaf = -1;

  bool is_whole() const { return (data != nullptr && held_with.empty()) || shape.numel() == 0; }
  int64_t bytes() const { return shape.numel() * size_of(dtype); }
};
// What of the tensor lies here, as pieces: all of it, if it is whole.
std::vector<StatePiece> pieces_of(const StateTensor& tensor);
// Calls visit(elements, address) for what of the wanted elements lies in the pieces, in order.
template <typename Visit>
void for_pieces(const StateTensor& tensor, Slice wanted, const Visit& visit) {
  const auto ends = [](const StatePiece& piece) { return piece.first + piece.count; };
  auto piece = std::ranges::upper_bound(tensor.pieces, wanted.begin, {}, ends);
  for (; piece != tensor.pieces.end() && piece->first < wanted.end; ++piece) {
    const Slice part{std::max(wanted.begin, piece->first), std::min(wanted.end, ends(*piece))};
    if (part.size() > 0)
      visit(part, static_cast<std::byte*>(piece->data) + (part.begin - piece->first) * size_of(tensor.dtype));
  }
}

// How tensors that workers own pieces of come to the one that leads, and back, while the others do what it
// asks for.
struct SplitTensors {
  // Some bytes of a tensor, from `first` on.
  using Read = std::function<void(const StateTensor& tensor, int64_t first, std::span<std::byte> into)>;
  using Write =
      std::function<void(const StateTensor& tensor, int64_t first, std::span<const std::byte> from)>;
  Read read;
  Write write;
};

class TrainState {
 public:
  using Allocate = std::function<std::unique_ptr<Buffer>(int64_t bytes)>;

  // All zero; see initialise. `allocate_flat` makes the flat buffers.
  TrainState(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
             const std::vector<FrozenParam>& frozen, const OptimizerSettings& optimizer, bool averages,
             const Ownership& ownership, const Allocate& allocate_flat);
  // The same of a worker that holds a part of the model: lists still have all tensors, of which some are not
  // here. `whole`: the layout of all of it. `pieces`: those of its entries that are leaves of a parameter;
  // the lists have the parameters.
  TrainState(Backend& backend, const FlatLayout& layout, const std::vector<RowTable>& tables,
             const std::vector<FrozenParam>& frozen, const OptimizerSettings& optimizer, bool averages,
             const Ownership& ownership, const Allocate& allocate_flat, const FlatLayout& whole,
             const ModelHolders& holders, int mesh_rank, const LeafPieces& pieces = {});

  // Parameters and statistics as the model begins with them, parameters a function of (seed, name, element);
  // everything else zero. begin_averages() when the parameters of all who fill them are there.
  void initialise(const Model& model, uint64_t seed);
  // The averages equal to the parameters, of those that this worker fills in.
  void begin_averages() const;

  const std::vector<StateTensor>& params() const { return params_; }
  const std::vector<StateTensor>& frozen() const { return frozen_; }
  const std::vector<StateTensor>& statistics() const { return statistics_; }
  // Parameters, frozen ones, then statistics: what the hash of the weights covers, and what to load to use
  // the model.
  const std::vector<StateTensor>& model() const { return model_; }
  const std::vector<StateTensor>& optimizer() const { return optimizer_; }
  const std::vector<StateTensor>& averages() const { return averages_; }  // in the order of the parameters
  // In the order of leaves and parameters; none where gradients are sent as a whole.
  const std::vector<StateTensor>& residuals() const { return residuals_; }
  const StateTensor& param(std::string_view name) const;  // a frozen one too; throws UserError
  // What an evaluation reads of a parameter, its average where one is kept, or of a statistic.
  const StateTensor& evaluated_tensor(std::string_view name) const;
  // Where it finds one that is whole.
  void* evaluated(std::string_view name) const;
  const Ownership& ownership() const { return ownership_; }
  const ModelHolders& holders() const { return holders_; }
  const FlatLayout& whole() const { return whole_; }  // of the model, whoever holds it
  // An entry of the layout as it lies here: a parameter, or a leaf of one.
  const StateTensor& entry(const std::string& name) const;
  // Of an entry that another worker holds and this one reads (ModelHolders::copies); null: of none.
  void* copy_of(const std::string& name) const;
  // Whether there are tensors that others have to be asked for.
  bool is_split() const {
    return ownership_.is_split() || holders_.is_split() || in_leaves() ||
           (!residuals_.empty() && leaves_by_rank_.size() > 1);
  }
  // Whether parameters lie in pieces, one for each leaf that is here.
  bool in_leaves() const { return !pieces_.empty(); }
  // Of an entry of the layout; null where it is a whole parameter.
  const LeafPiece* piece(const std::string& entry) const {
    const auto found = pieces_.find(entry);
    return found == pieces_.end() ? nullptr : &found->second;
  }
  // What of a tensor that is split a worker of the run has, or is asked for: of several tensor ranks who have
  // the same, one is. Elements of the tensor, in order.
  enum class Held : uint8_t { kAsked, kAll };
  std::vector<Slice> held_by(int rank, const StateTensor& tensor, Held which = Held::kAsked) const;
  // Whether any of it is with those who hold the same part of the model as this worker.
  bool is_held_here(const StateTensor& tensor) const;

  // Makes room for what the leaves of a worker have not sent, zeros: a flat buffer of parameters for each of
  // its leaves, one behind the other. `by_rank`: the leaves of every worker.
  float* add_residuals(std::vector<LeafRange> by_rank, int rank);
  void clear_residuals() const;

  // Says that every row of every table has reached the step: their count of steps is not stored.
  void mark_rows(int64_t step);

  // Binds the inputs of an executable that are buffers of this state; of the flat ones, the part that this
  // worker updates. One that updates any of them waits at the gate whenever it runs.
  void bind(Executable& executable) const;
  // Binds one that updates the elements of a slice that this worker owns; they begin at that one of all that
  // it owns.
  void bind_slice(Executable& executable, Slice slice, int64_t first) const;
  // All parameters, or those of the pieces that this worker owns.
  void* flat_params() const { return flat_.at("params").base; }
  // Of a flat buffer that is whole ("params", "moment1", "average"), its first element.
  void* flat_buffer(std::string_view name) const { return flat_.at(std::string(name)).base; }
  // Held by those who read the state in the background.
  StateGate& gate() const { return gate_; }
  // Of the device's memory; what many hold together is a part of each one's.
  int64_t bytes() const;

 private:
  void* allocate(std::string_view name, int64_t bytes);
  void* allocate_flat(std::string_view name, int64_t numel, DType dtype);
  void* add_flat(std::string_view name, DType dtype, void* base);
  // Of the optimizer's state and averages: where these lie.
  void* allocate_state(std::string_view name, int64_t numel, DType dtype);
  // The same of those elements that this worker owns.
  void* allocate_owned(std::string_view name, DType dtype);
  StateTensor split_tensor(std::string name, DType dtype, const FlatEntry& entry, void* base) const;
  void add_split_tensors(const FlatLayout& layout, const OptimizerSettings& optimizer);
  void wait_at_gate(Executable& executable) const;
  void add_flat_tensors(const FlatLayout& layout, const OptimizerSettings& optimizer);
  void add_statistics(const FlatLayout& layout);
  void add_frozen(const std::vector<FrozenParam>& frozen);
  void add_tables(const std::vector<RowTable>& tables);
  void begin_average(const StateTensor& average, const StateTensor& param) const;
  // Adds the tensors that others hold, and marks those that only some do.
  void add_tensors_elsewhere(const OptimizerSettings& optimizer);
  // Leaves as runs of elements of the parameters, or of what is kept beside these.
  std::vector<StateTensor> joined(const std::vector<StateTensor>& tensors) const;
  std::vector<Slice> held_entry(int rank, const std::string& entry, int64_t numel, int64_t offset,
                                Held which) const;

  Backend& backend_;
  std::vector<RowTable> tables_;
  bool averaging_;
  MemoryKind state_memory_;  // of flat state and averages
  mutable StateGate gate_;
  Ownership ownership_;
  FlatLayout layout_;
  std::vector<Slice> owned_;
  Allocate flat_memory_;
  struct Flat {
    void* base = nullptr;
    DType dtype = DType::kF32;
    bool split = false;
  };
  std::unordered_map<std::string, Flat> flat_;
  FlatLayout whole_;
  ModelHolders holders_;
  int mesh_rank_ = 0;
  LeafPieces pieces_;
  std::vector<std::unique_ptr<Buffer>> buffers_, flat_buffers_, offloaded_;
  std::unordered_map<std::string, void*> addresses_;
  std::vector<StateTensor> params_, frozen_, statistics_, model_, optimizer_, averages_, residuals_;
  std::vector<StateTensor> leaves_;  // of parameters, where these lie in pieces
  std::vector<LeafRange> leaves_by_rank_;
  Buffer* residual_memory_ = nullptr;  // of this worker; one of buffers_
};

}  // namespace lockstep

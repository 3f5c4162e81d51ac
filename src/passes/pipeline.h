// The one ordered list of passes, and how it is run: after every pass the graph is verified and the pass is
// timed; any pass can be dumped, disabled or stopped after by name.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/choices.h"
#include "graph/op_def.h"

namespace lockstep {

Recompute parse_recompute(std::string_view name);  // throws UserError with the choices

// An axis of a mesh over whose ranks a graph is split (passes/shard.h).
struct ShardAxis {
  std::string group;  // what collectives call the ranks: "tensor"
  int64_t size = 1;
  int64_t index = 0;                                 // of this rank among them
  std::map<std::string, Placement> placements = {};  // of graph inputs; the others are replicated
};

// Parameters that are gathered together just before they are used, since workers own pieces of them
// (passes/gather_params.h): neighbours in the flat layout.
struct ParamUnit {
  struct Part {
    std::string name;
    int64_t offset = 0;  // of its first byte in the unit, in elements of the unit
  };
  int64_t numel = 0;  // padding included
  std::vector<Part> parts = {};
  DType dtype = DType::kF32;  // of its elements; a parameter may have another

  int64_t offset_bytes(const Part& part) const { return part.offset * size_of(dtype); }
};

struct PassOptions {
  bool accumulate_gradients = false;
  Recompute recompute = Recompute::kNone;
  DType compute = DType::kF32;       // or bf16, for products and what follows them
  bool product_epilogues = false;    // the backend's products take a bias, a residual or a slope along
  bool stochastic_rounding = false;  // of parameters to bf16, by the graph input kRoundingInput
  std::vector<ShardAxis> shard;      // none: the graph is for one rank
  std::vector<ParamUnit> units;      // none: parameters are there as a whole
  int64_t head_chunks = 1;           // in which rows go through the head (passes/head_chunks.h)
  int64_t batches = 1;               // that go through the units together (passes/batches.h)
  std::vector<std::string> disabled;
  std::string start_after;  // the graph has been through this pass and those before it
  std::string stop_after;
  std::vector<std::string> dump_after;
  std::function<void(std::string_view pass, const Graph&)> dump;
  // Receives one line per decision that a pass wants to explain ("fusion", ...), when set.
  std::function<void(std::string_view topic, const std::string& line)> explain;
};

struct Pass {
  std::string_view name;
  std::string_view summary;
  Stage stage;              // of the graph after the pass
  bool changes_arithmetic;  // whether rounding may differ with the pass on and off
  Graph (*run)(const Graph&, const PassOptions&);
  // Where it says no, the pass would change nothing, and is passed over.
  bool (*applies)(const Graph&, const PassOptions&) = [](const Graph&, const PassOptions&) { return true; };
};

struct PassTiming {
  std::string_view name;
  double milliseconds;
};

std::span<const Pass> all_passes();
const Pass& find_pass(std::string_view name);  // throws UserError with the nearest name

// Runs every enabled pass in order. A training graph (with parameters) is differentiated; pass "autodiff" in
// `disabled` for inference.
Graph run_passes(const Graph& graph, const PassOptions& options, std::vector<PassTiming>* timings = nullptr);

}  // namespace lockstep

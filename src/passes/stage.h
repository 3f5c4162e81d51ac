// stage: cuts a differentiated graph into the stages of a pipeline.
//
//   embed -> block 0 -> block 1 | block 2 -> block 3 -> head -> loss
//   <------- stage 0 ---------> | <----------- stage 1 ------------>
//
// Stages begin at the block marks (`checkpoint` nodes) and are as equal in flops as these allow: a function
// of the model and the number of stages alone. A parameter belongs to the stage that first reads it
// (a cast of it reads nothing yet).
//
// The graph is cut when all passes that may change arithmetic have run over the whole of it, so that every
// node is what it is on one worker. A forward node lies in the last stage of what it reads, a node of
// backward in the highest that has all it reads and comes no later than the gradients that it takes. What is
// made of data alone is made anew wherever it is needed.
//
// A parameter that a later stage reads too (a tied embedding) has a copy there. Its gradient is summed where
// the parameter is, in the order of one worker: what the later use gives of a microbatch is sent there.
//
// Each stage has a forward graph and a backward one, and, apart from that, one for the gradients of weights
// where these are to be made later. What one of them makes for another is written into an input of its own
// (slot_name), a buffer that each microbatch in flight has; the other reads it as an input of the value's
// name.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace lockstep {

// Of the input that the graph of a part writes a value to.
std::string slot_name(std::string_view value);

// Which stage each parameter is in, trained or frozen.
struct StageMap {
  int stages = 1;
  std::map<std::string, int, std::less<>> params = {};
  std::map<std::string, std::set<int>> copies = {};  // other stages that read one (tied weights)
  int stage_of(std::string_view param) const;
};

// `forward`: the model's graph, with its marks. Throws UserError where it has fewer blocks than stages.
StageMap assign_stages(const Graph& forward, int stages);

struct StageTransfer {
  std::string value;
  Type type;
  int from = 0, to = 0;  // stages
  bool backward = false;
  bool operator==(const StageTransfer&) const = default;
};

struct SlotValue {
  std::string value;
  Type type;
};

struct StageGraphs {
  Graph forward;
  // Per graph that was given: gradients of inputs and weights, or, apart, of inputs alone and then weights.
  std::vector<Graph> backward, weights;
  // What a microbatch keeps for it, from forward on: received, saved, or sent. Loss and count too, in the
  // last stage, in this order, by the names of the graph's outputs.
  std::vector<SlotValue> slot;
};

// Graphs of one model that differ in what they do with gradients (write or add), cut at the same places. They
// must outlive it.
class StageCut {
 public:
  // `apart`: gradients of weights in graphs of their own.
  StageCut(const std::vector<const Graph*>& graphs, const StageMap& map, bool apart);

  // The graphs of one stage, made when they are asked for: a worker has few of many stages.
  StageGraphs stage(int stage) const { return make_(stage); }
  const std::vector<StageTransfer>& transfers() const { return transfers_; }  // in the order of the graph
  // Values of the last stage's slot.
  const std::string& loss() const { return loss_; }
  const std::string& count() const { return count_; }
  const OpSet& ops() const { return *ops_; }

 private:
  std::function<StageGraphs(int)> make_;
  std::vector<StageTransfer> transfers_;
  std::string loss_, count_;
  const OpSet* ops_;
};

}  // namespace lockstep

// A model: the forward graph of one microbatch, and how its parameters begin.
//
// Every family gives a graph whose outputs are (loss, count): the loss summed over the microbatch, and how
// many tokens or samples it counts. Built with training = false, the graph is the one to evaluate with: no
// dropout, running statistics instead of the batch's, and a third output, what the model answers (see Task).
// The parameters are the same. They carry the names that Hugging Face or torchvision give them where the
// family exists there.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/philox.h"
#include "graph/graph.h"

namespace lockstep {

struct ParamInit {
  using Kind = RandomFill::Kind;
  std::string name;
  Kind kind = Kind::kConstant;
  double a = 0;  // the constant; the mean; the lower end
  double b = 0;  // the standard deviation; the upper end
  // Weights are decayed by the optimizer; norms and biases are not.
  bool decay = false;
  DType dtype = DType::kF32;  // as it is stored, which its graph input says too
  bool frozen = false;        // not trained: a @frozen input instead of a @param one
  bool given = false;         // not drawn: somebody gives its values before the first step
  // Elements [zeros_begin, zeros_end) begin at 0 instead: the row of a table that stands for padding.
  int64_t zeros_begin = 0, zeros_end = 0;
};

// A number per channel that training averages over steps for the evaluation to use, such as the mean of a
// batch norm. The training graph writes it for its microbatch into a @statistic input of this name; the
// evaluation graph reads the average from a @state input.
struct StatisticInit {
  std::string name;
  float start = 0;
};

// What a model answers, and with it which metrics an evaluation has.
enum class Task : uint8_t {
  kNextToken,  // predictions i32[B*T] for targets i32[B,T]
  kClassify,   // predictions i32[B], or logits f32[B,C], for labels i32[B]
  kBinary,     // logits f32[B] for labels f32[B]
  kRegress,    // values f32[B] for labels f32[B], both standardised (Model::target)
};

// How the values that a model learns follow from those it is about: (value - mean) / deviation.
struct TargetScale {
  double mean = 0, deviation = 1;
};

struct Model {
  Graph graph;
  std::vector<ParamInit> params;  // in the order of the graph's @param and @frozen inputs
  int64_t samples = 0;            // per microbatch
  int64_t tokens = 0;             // per microbatch; 0 where the family has none
  // How to draw synthetic integer inputs: an exclusive upper bound per i32 input name; others are drawn
  // normal.
  std::vector<std::pair<std::string, int64_t>> integer_inputs;
  Task task = Task::kClassify;
  std::vector<StatisticInit> statistics = {};
  // How far a step moves the averages towards its own statistics.
  double statistics_momentum = 0.1;
  TargetScale target = {};  // of kRegress
};

// Frozen ones too.
int64_t parameter_count(const Model& model);

// What a parameter begins with: a function of (seed, name, element) alone.
RandomFill random_fill(const ParamInit& init, uint64_t seed);
// Fills elements [first, first + values.size()) of it.
void init_param(const ParamInit& init, uint64_t seed, int64_t first, std::span<float> values);

}  // namespace lockstep

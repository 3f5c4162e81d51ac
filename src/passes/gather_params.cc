#include "passes/gather_params.h"

#include <algorithm>

#include "base/error.h"
#include "graph/op_def.h"
#include "graph/rewriter.h"
#include "passes/bf16.h"

namespace lockstep {
namespace {

constexpr int32_t kNone = -1;

// The time that a unit is there: from one gather to the use after which it is forgotten.
struct Stay {
  int32_t unit = kNone;
  int32_t first = 0, last = 0;  // nodes that use it
};

class Gathering {
 public:
  Gathering(const Graph& old, const std::vector<ParamUnit>& units)
      : old_(old),
        units_(units),
        unit_of_(static_cast<size_t>(old.value_count()), kNone),
        derived_(old.nodes().size(), false),
        made_(static_cast<size_t>(old.value_count())),
        latest_(units.size(), kNone),
        rewriter_(old, [this](Value input) { return place_input(input) == kNone; }) {}

  Graph run() && {
    find_derived();
    find_stays();
    for (int32_t n = 0; n < static_cast<int32_t>(old_.nodes().size()); ++n)
      if (!derived_[static_cast<size_t>(n)]) emit(n);
    return std::move(rewriter_).finish();
  }

 private:
  struct Made {
    Value value;
    int32_t stay = kNone;  // for which it was made
  };

  const Node& node(int32_t n) const { return old_.nodes()[static_cast<size_t>(n)]; }
  int32_t& unit_of(Value value) { return unit_of_[static_cast<size_t>(value.id)]; }

  // The unit of a graph input, which is remembered.
  int32_t place_input(Value input) {
    const std::string& name = old_.name(input);
    for (size_t u = 0; u < units_.size(); ++u)
      for (const ParamUnit::Part& part : units_[u].parts)
        if (part.name == name) return unit_of(input) = static_cast<int32_t>(u);
    return kNone;
  }

  // Of no unit, and there at any time.
  bool is_neutral(Value value) const {
    const int32_t producer = old_.producer(value);
    return producer < 0 ? old_.name(value) == kRoundingInput : node(producer).inputs.empty();
  }

  void find_derived() {
    std::vector<bool> wanted(static_cast<size_t>(old_.value_count()), false);
    for (const GraphOutput& output : old_.outputs()) wanted[static_cast<size_t>(output.value.id)] = true;
    for (int32_t n = 0; n < static_cast<int32_t>(old_.nodes().size()); ++n) {
      int32_t unit = kNone;
      bool derived = !node(n).op->traits.collective;
      for (const Value input : node(n).inputs) {
        const int32_t own = unit_of(input);
        derived = derived && (own == kNone ? is_neutral(input) : unit == kNone || unit == own);
        if (own != kNone) unit = own;
      }
      for (const Value output : node(n).outputs) derived = derived && !wanted[static_cast<size_t>(output.id)];
      if (unit == kNone || !derived) continue;
      derived_[static_cast<size_t>(n)] = true;
      for (const Value output : node(n).outputs) unit_of(output) = unit;
    }
  }

  void find_stays() {
    std::vector<int32_t> open(units_.size(), kNone), last_use(units_.size(), kNone);
    for (int32_t n = 0; n < static_cast<int32_t>(old_.nodes().size()); ++n) {
      if (derived_[static_cast<size_t>(n)]) continue;
      for (const Value input : node(n).inputs) {
        const int32_t unit = unit_of(input);
        if (unit == kNone) continue;
        const auto u = static_cast<size_t>(unit);
        const bool others = std::any_of(last_use.begin(), last_use.end(),
                                        [&](int32_t use) { return use > last_use[u] && use < n; });
        if (open[u] == kNone || others) {
          open[u] = static_cast<int32_t>(stays_.size());
          stays_.push_back({unit, n, n});
        }
        stays_[static_cast<size_t>(open[u])].last = n;
        last_use[u] = n;
      }
    }
  }

  void emit(int32_t n) {
    while (next_ < stays_.size() && stays_[next_].first == n) begin_stay();
    std::vector<Value> operands;
    for (const Value input : node(n).inputs)
      operands.push_back(unit_of(input) == kNone ? rewriter_.mapped(input) : made(input));
    rewriter_.copy(node(n), std::move(operands));
  }

  void begin_stay() {
    if (started_ == next_) start();
    const auto unit = static_cast<size_t>(stays_[next_].unit);
    latest_[unit] = static_cast<int32_t>(next_);
    whole_.push_back(rewriter_.graph().emit("gather_unit_done", {gathers_[next_]},
                                            {{"unit", static_cast<int64_t>(unit)}},
                                            fmt::format("unit{}", unit)));
    ++next_;
    if (started_ == next_ && next_ < stays_.size()) start();
  }

  void start() {
    const Stay& stay = stays_[started_++];
    const ParamUnit& unit = units_[static_cast<size_t>(stay.unit)];
    gathers_.push_back(rewriter_.graph().emit(
        "gather_unit_start", {}, {{"unit", int64_t{stay.unit}}, {"numel", unit.numel}, {"dtype", unit.dtype}},
        fmt::format("unit{}_start", stay.unit)));
  }

  // A parameter, or what is derived from some, in the stay at hand of its unit.
  Value made(Value value) {
    const int32_t unit = unit_of(value);
    const int32_t stay = latest_[static_cast<size_t>(unit)];
    Made& found = made_[static_cast<size_t>(value.id)];
    if (found.stay == stay) return found.value;
    if (old_.producer(value) < 0) {
      found = {part(value, unit, stay), stay};
      return found.value;
    }
    const Node& source = node(old_.producer(value));
    std::vector<Value> operands;
    for (const Value input : source.inputs)
      operands.push_back(unit_of(input) == kNone ? rewriter_.mapped(input) : made(input));
    const std::vector<Value> results =
        rewriter_.graph().emit_all(*source.op, operands, source.attributes, old_.name(source.outputs[0]));
    for (size_t i = 0; i < results.size(); ++i)
      made_[static_cast<size_t>(source.outputs[i].id)] = {results[i], stay};
    return made_[static_cast<size_t>(value.id)].value;
  }

  Value part(Value param, int32_t unit, int32_t stay) {
    const std::string& name = old_.name(param);
    for (const ParamUnit::Part& one : units_[static_cast<size_t>(unit)].parts) {
      if (one.name != name) continue;
      const auto& [dtype, shape] = old_.type(param);
      return rewriter_.graph().emit("unit_part", {whole_[static_cast<size_t>(stay)]},
                                    {{"param", name},
                                     {"offset", one.offset},
                                     {"shape", std::vector<int64_t>(shape.begin(), shape.end())},
                                     {"dtype", dtype}},
                                    name);
    }
    throw InternalError("{} is of no unit", name);
  }

  const Graph& old_;
  const std::vector<ParamUnit>& units_;
  std::vector<int32_t> unit_of_;        // per value: of parameters and what is derived from them
  std::vector<bool> derived_;           // per node
  std::vector<Made> made_;              // per value
  std::vector<int32_t> latest_;         // per unit: its stay at hand
  std::vector<Stay> stays_;             // in the order of their first use
  std::vector<Value> gathers_, whole_;  // per stay: what its start and its done give
  size_t started_ = 0, next_ = 0;       // stays that have been gathered ahead, that have begun
  Rewriter rewriter_;
};

}  // namespace

Graph gather_params(const Graph& graph, const PassOptions& options) {
  return Gathering(graph, options.units).run();
}

}  // namespace lockstep

#include "train/guard/inspect.h"

#include <algorithm>
#include <cmath>

#include "graph/op_def.h"
#include "train/guard/bad_input.h"
#include "train/guard/fp32_twin.h"
#include "train/guard/nearest_parameter.h"

namespace lockstep {
namespace {

class Inspector {
 public:
  Inspector(TrainStep& train, const Model& model, const InspectOptions& options)
      : train_(train), model_(model), options_(options), backend_(train.backend()) {}

  Inspection run() {
    look_at_sums();
    if (parameter_was_bad()) return found_;
    for (int64_t m = 0; m < options_.microbatches; ++m)
      if (look_at_microbatch(m)) return found_;
    blame_for_spike();
    return found_;
  }

 private:
  // Before anything is run again: the sums are lost then.
  void look_at_sums() {
    for (const StateTensor& param : train_.params()) {
      for (const float x : train_.grad(param.name)) {
        if (std::isfinite(x))
          found_.largest_gradient = std::max(found_.largest_gradient, std::fabs(static_cast<double>(x)));
        else if (!found_.bad_sum_of)
          found_.bad_sum_of = param.name;
      }
    }
  }

  bool parameter_was_bad() {
    std::vector<std::byte> host;
    for (const StateTensor& param : train_.params()) {
      host.resize(static_cast<size_t>(param.bytes()));
      train_.read_state(param, 0, host);
      for (int64_t i = 0; i < param.shape.numel(); ++i) {
        const double value = read_element(param.dtype, host.data(), i);
        if (std::isfinite(value)) continue;
        found_.parameter = param.name;
        found_.parameter_was_bad = true;
        found_.first = NonFiniteValue{param.name, "input", i, value, false, 0, ""};
        return true;
      }
    }
    return false;
  }

  // True when the search ends here.
  bool look_at_microbatch(int64_t m) {
    Executable& backward = train_.prepare_microbatch(m, options_.load, options_.step);
    if (auto bad = find_bad_input(backward, backend_, model_)) {
      blame(m, bad->row);
      if (options_.describe) bad->record = options_.describe(m, bad->row);
      found_.bad_input = std::move(bad);
      return true;
    }
    if (options_.trouble == Trouble::kNothingCounted) {
      blame(m, -1);
      return true;
    }
    backward.run();
    float loss = 0;
    int64_t count = 0;
    backend_.download(&loss, backward.output(0), sizeof loss);
    backend_.download(&count, backward.output(1), sizeof count);
    found_.losses.push_back(static_cast<double>(loss) / static_cast<double>(std::max<int64_t>(count, 1)));
    if (results_finite(backward, backend_)) return false;

    found_.first = first_non_finite(train_.prepare_microbatch(m, options_.load, options_.step), backend_);
    blame(m, found_.first ? row_of(*found_.first) : -1);
    if (!found_.first) return true;
    found_.parameter = nearest_parameter(backward.graph(), backward.graph().find(found_.first->value));
    if (options_.passes.compute == DType::kBF16)
      found_.fp32_finite = finite_in_fp32(model_, backward, backend_, options_.passes);
    return true;
  }

  // Names a microbatch and its samples, or the one sample of a row.
  void blame(int64_t m, int64_t row) {
    found_.microbatch = m;
    if (!options_.describe) return;
    if (row >= 0) {
      found_.samples = {options_.describe(m, row)};
      return;
    }
    for (int64_t r = 0; r < model_.samples; ++r) found_.samples.push_back(options_.describe(m, r));
  }

  // The sample that an element belongs to, where the value is laid out by samples or tokens; else -1.
  int64_t row_of(const NonFiniteValue& bad) const {
    const Graph& graph = train_.backward().graph();
    const Value value = graph.find(bad.value);
    const Shape& shape = graph.type(value).shape;
    if (shape.rank() < 2 || (shape[0] != model_.samples && shape[0] != model_.tokens)) return -1;
    // Gradients of parameters are sums over samples, whatever their first extent is.
    for (const GraphOutput& output : graph.outputs())
      if (output.value == value) return -1;
    return bad.element / (shape.numel() / model_.samples);
  }

  // A spike is blamed on the microbatch with the largest loss.
  void blame_for_spike() {
    if (options_.trouble != Trouble::kSpikeLoss && options_.trouble != Trouble::kSpikeGradient) return;
    blame(std::max_element(found_.losses.begin(), found_.losses.end()) - found_.losses.begin(), -1);
  }

  TrainStep& train_;
  const Model& model_;
  const InspectOptions& options_;
  Backend& backend_;
  Inspection found_;
};

}  // namespace

Inspection inspect(TrainStep& train, const Model& model, const InspectOptions& options) {
  return Inspector(train, model, options).run();
}

}  // namespace lockstep

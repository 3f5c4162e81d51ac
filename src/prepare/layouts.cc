#include "prepare/layouts.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <thread>
#include <tuple>

#include "base/error.h"
#include "base/thread_pool.h"
#include "prepare/job_options.h"

namespace lockstep {
namespace {

constexpr int64_t kMostTensor = 8;  // ranks that exchange inside every layer: those of one host
constexpr int64_t kLastStage = 3;   // of ZeRO

double gib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> found;
  for (int64_t i = 1; i <= number; ++i)
    if (number % i == 0) found.push_back(i);
  return found;
}

// What of the state a device has at least: of trained parameters, evenly shared out.
struct StateBytes {
  int64_t frozen = 0, parameters = 0, gradients = 0, state = 0;  // state: and averages

  // Of what lies on the device.
  int64_t of(const Layout& layout) const {
    const int64_t cut = layout.pipeline * layout.tensor;
    const auto part = [&](int64_t bytes, int64_t stage) {
      return bytes / cut / (layout.zero >= stage ? layout.data : 1);
    };
    return frozen / cut + part(parameters, 3) + part(gradients, 2) + (layout.offload ? 0 : part(state, 1));
  }
};

StateBytes state_bytes(const Model& model, const TrainOptions& options) {
  StateBytes bytes;
  FlatLayout layout(trained_dtype(model.graph));
  for (const GraphInput& input : model.graph.inputs()) {
    const Type& type = model.graph.type(input.value);
    if (input.role == Role::kFrozen) bytes.frozen += type.bytes();
    if (input.role == Role::kParam) layout.add(model.graph.name(input.value), type.shape);
  }
  bytes.parameters = bytes.gradients = layout.numel() * size_of(layout.dtype());
  for (const StateBuffer& buffer : optimizer_state(layout, options.optimizer)) bytes.state += buffer.bytes();
  if (options.ema > 0) bytes.state += layout.numel() * size_of(DType::kF32);
  return bytes;
}

class LayoutPlanner {
 public:
  LayoutPlanner(const JobSpec& spec, const InputSizes& inputs, const DeviceSet& devices)
      : spec_(spec), inputs_(inputs), devices_(devices), model_(build_job_model(spec, inputs)) {
    JobSpec alone = spec;
    alone.strategy = {};
    alone.strategy.workers = 1;
    const ResolvedJob job = resolve(alone, facts());
    state_ = state_bytes(model_, job_train_options(alone, job));
  }

  // The layouts of one mesh.
  void plan(std::span<PlannedLayout* const> layouts) {
    SharedGraphs graphs(&graphs_);
    for (PlannedLayout* const layout : layouts) *layout = plan(layout->layout, graphs);
  }

 private:
  // With the least recomputation that fits, else with the most: where that does not, none does. State is
  // moved to the host's memory where nothing else makes it fit.
  PlannedLayout plan(Layout layout, SharedGraphs& graphs) const {
    layout.recompute = Recompute::kBlock;
    PlannedLayout most = attempt(layout, graphs);
    const bool may_offload = !most.planned || most.bytes - most.state <= devices_.bytes;
    if (!most.fits && most.refused.empty() && may_offload && spec_.device != DeviceKind::kCpu) {
      layout.offload = true;
      if (PlannedLayout offloaded = attempt(layout, graphs); offloaded.fits) most = offloaded;
    }
    if (!most.fits) return most;
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFused, Recompute::kCheap}) {
      if (recompute < spec_.train.recompute) continue;
      layout.recompute = recompute;
      if (PlannedLayout planned = attempt(layout, graphs, Telling::kWhetherItFits); planned.fits)
        return planned;
    }
    return most;
  }

  JobFacts facts() const { return {.parameters = parameter_count(model_), .train_samples = {}}; }

  JobSpec split(const Layout& layout) const {
    JobSpec spec = spec_;
    spec.train.recompute = layout.recompute;
    spec.strategy.workers = devices_.count;
    spec.strategy.pipeline = layout.pipeline;
    spec.strategy.tensor = layout.tensor;
    spec.strategy.zero = layout.zero;
    spec.strategy.zero_group.reset();
    spec.strategy.offload = layout.offload ? Offload::kState : Offload::kNone;
    spec.strategy.memory.reset();
    const int64_t microbatches = spec.train.global_batch / spec.train.microbatch;
    if (!spec.strategy.leaves)
      spec.strategy.leaves = std::max(layout.data, default_leaves(microbatches, *facts().parameters));
    return spec;
  }

  // What is asked of an attempt: all that the fullest device takes, or only whether it fits.
  enum class Telling : uint8_t { kAll, kWhetherItFits };

  PlannedLayout attempt(const Layout& layout, SharedGraphs& graphs, Telling telling = Telling::kAll) const {
    PlannedLayout planned;
    planned.layout = layout;
    try {
      const JobSpec spec = split(layout);
      const ResolvedJob job = resolve(spec, facts());
      planned.bytes = state_.of(layout);
      if (planned.bytes > devices_.bytes) return planned;
      planned.planned = true;
      planned.bytes = 0;
      // The first stage holds the activations of most microbatches and the table of tokens, the last one the
      // head. Owners have unequally much by a block, the last ones most (slice_of). The first one evaluates.
      const int64_t stage = layout.data * layout.tensor;
      std::set<int64_t> ranks = {stage - 1, layout.pipeline * stage - 1};
      if (evaluates(spec)) ranks.insert(0);
      for (const int64_t rank : ranks) {
        take_fuller(planned, graphs, spec, job, rank);
        planned.fits = planned.bytes <= devices_.bytes;
        if (telling == Telling::kWhetherItFits && !planned.fits) break;
      }
    } catch (const UserError& error) {
      planned.refused = error.what();
    }
    return planned;
  }

  void take_fuller(PlannedLayout& planned, SharedGraphs& graphs, const JobSpec& spec, const ResolvedJob& job,
                   int64_t rank) const {
    const JobPlan plan = plan_job(spec, job, model_, inputs_, *backend_, {}, static_cast<int>(rank), &graphs);
    const TrainMemory& memory = plan.memory;
    const int64_t bytes = memory.bytes() + plan.beside.evaluation;
    if (bytes <= planned.bytes) return;
    planned.bytes = bytes;
    planned.parameters = memory.parameters;
    planned.gradients = memory.gradients;
    planned.state = memory.state + memory.averages;
    planned.activations = bytes - memory.parameters - memory.gradients - planned.state;
  }

  const JobSpec& spec_;
  const InputSizes& inputs_;
  DeviceSet devices_;
  Model model_;
  StateBytes state_;
  std::unique_ptr<Backend> backend_ = make_null_backend();  // outlives the plans that are shared
  SharedGraphs graphs_;
};

// What a layout costs in time, coarsely and in this order: state across the bus, recomputation, sums inside
// every layer, transfers of parameters, stages that wait for each other.
auto price(const Layout& layout) {
  return std::make_tuple(layout.offload, layout.recompute == Recompute::kBlock, layout.tensor > 1,
                         layout.zero == 3, layout.pipeline > 1, layout.recompute, layout.tensor,
                         layout.pipeline, layout.zero);
}

std::string_view note(const PlannedLayout& planned) {
  if (!planned.refused.empty()) return planned.refused;
  if (!planned.planned) return "its state alone is too much";
  return planned.fits ? "fits" : "too much";
}

}  // namespace

std::vector<std::string> settings_of(const Layout& layout) {
  std::vector<std::string> settings = {
      fmt::format("strategy.workers={}", layout.data * layout.pipeline * layout.tensor)};
  const auto add = [&](std::string_view key, int64_t value, int64_t standard) {
    if (value != standard) settings.push_back(fmt::format("{}={}", key, value));
  };
  add("strategy.zero", layout.zero, 0);
  add("strategy.pipeline", layout.pipeline, 1);
  add("strategy.tensor", layout.tensor, 1);
  if (layout.offload) settings.emplace_back("strategy.offload=state");
  if (layout.recompute != Recompute::kNone)
    settings.push_back(fmt::format("train.recompute={}", name_of(layout.recompute)));
  return settings;
}

std::vector<PlannedLayout> plan_layouts(const JobSpec& spec, const InputSizes& inputs,
                                        const DeviceSet& devices) {
  std::vector<PlannedLayout> layouts;
  for (const int64_t tensor : divisors(devices.count)) {
    if (tensor > kMostTensor) continue;
    for (const int64_t pipeline : divisors(devices.count / tensor)) {
      const int64_t data = devices.count / tensor / pipeline;
      for (int64_t zero = 0; zero <= (data > 1 ? kLastStage : 0); ++zero)
        layouts.emplace_back().layout = {data, pipeline, tensor, zero};
    }
  }
  // One with few stages takes longest. Neighbours in this order differ in the tensor ranks: threads that need
  // the same graph wait for the one who makes it.
  std::map<std::pair<int64_t, int64_t>, std::vector<PlannedLayout*>> by_mesh;
  for (PlannedLayout& one : layouts) by_mesh[{one.layout.pipeline, -one.layout.tensor}].push_back(&one);
  std::vector<std::vector<PlannedLayout*>> meshes;
  for (auto& [mesh, of_it] : by_mesh) meshes.push_back(std::move(of_it));
  LayoutPlanner planner(spec, inputs, devices);
  ThreadPool pool(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  pool.run(static_cast<int64_t>(meshes.size()),
           [&](int64_t i) { planner.plan(meshes[static_cast<size_t>(i)]); });
  std::stable_sort(layouts.begin(), layouts.end(), [](const PlannedLayout& a, const PlannedLayout& b) {
    if (a.fits != b.fits) return a.fits;
    return a.fits ? price(a.layout) < price(b.layout) : a.refused.empty() && !b.refused.empty();
  });
  return layouts;
}

std::string layout_table(const std::vector<PlannedLayout>& layouts, const DeviceSet& devices) {
  std::string out = fmt::format(
      "layouts over {} devices of {:.1f} GiB, and what the fullest device takes (GiB)\n"
      "  {:>4} {:>8} {:>6} {:>4} {:>9} {:>7} {:>10} {:>9} {:>9} {:>11} {:>9}\n",
      devices.count, gib(devices.bytes), "data", "pipeline", "tensor", "zero", "recompute", "offload",
      "parameters", "gradients", "optimizer", "activations", "in all");
  // A reason that many share is said once.
  std::vector<std::pair<std::string, int64_t>> refusals;
  for (const PlannedLayout& one : layouts) {
    const Layout& at = one.layout;
    if (!one.refused.empty()) {
      const auto said = std::find_if(refusals.begin(), refusals.end(),
                                     [&](const auto& reason) { return reason.first == one.refused; });
      if (said == refusals.end())
        refusals.emplace_back(one.refused, 1);
      else
        ++said->second;
      continue;
    }
    const auto part = [&](int64_t bytes) { return one.planned ? fmt::format("{:.2f}", gib(bytes)) : "-"; };
    out += fmt::format("  {:>4} {:>8} {:>6} {:>4} {:>9} {:>7} {:>10} {:>9} {:>9} {:>11} {:>9} {}\n", at.data,
                       at.pipeline, at.tensor, at.zero, name_of(at.recompute), at.offload ? "state" : "none",
                       part(one.parameters), part(one.gradients), part(one.state), part(one.activations),
                       fmt::format("{}{:.2f}", one.planned ? "" : "> ", gib(one.bytes)), note(one));
  }
  for (const auto& [reason, count] : refusals) out += fmt::format("  {} more: {}\n", count, reason);
  if (layouts.empty() || !layouts[0].fits)
    return out + "none fits: use more or larger devices, a smaller microbatch or model\n";
  return out +
         fmt::format("the first of them: --set {}\n", fmt::join(settings_of(layouts[0].layout), " --set "));
}

}  // namespace lockstep

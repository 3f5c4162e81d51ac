#include "runtime/executable.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "graph/op_def.h"
#include "ops/gather_unit.h"

namespace lockstep {
namespace {

// At the rates of a large GPU. Only what takes less per kernel than handing it over is worth a recording.
constexpr double kFlopsPerSecond = 6e14, kBytesPerSecond = 4e12, kWorthRecording = 1e-5;
// Leaves take turns in a few slots, each with addresses of its own.
constexpr size_t kMostRecordings = 8;
// What a library does at a kernel's first run cannot be recorded.
constexpr int64_t kRunsBefore = 2;

bool is_worth_recording(const Plan& plan) {
  double seconds = 0;
  int64_t kernels = 0;
  for (size_t n = 0; n < plan.kernels.size(); ++n) {
    if (plan.kernels[n] == nullptr) continue;
    const Cost cost = cost_of(plan.graph, plan.graph.nodes()[n]);
    seconds += cost.flops / kFlopsPerSecond + cost.bytes / kBytesPerSecond;
    ++kernels;
  }
  return kernels > 1 && seconds < kWorthRecording * static_cast<double>(kernels);
}

}  // namespace

Executable::Executable(Plan plan, Backend& backend, std::shared_ptr<Buffer> arena)
    : plan_(std::move(plan)),
      collectives_(plan_.transfers, plan_.steps.size(), backend),
      stream_(backend.compute()),
      arena_(arena ? std::move(arena) : backend.allocate(plan_.memory.arena_peak)),
      bound_(plan_.graph.inputs().size(), nullptr),
      records_(is_worth_recording(plan_)) {
  LOCKSTEP_CHECK(arena_->bytes() >= plan_.memory.arena_peak, "an arena of {} bytes for {}", arena_->bytes(),
                 plan_.graph.name());
  find_unit_uses();
}

void Executable::find_unit_uses() {
  for (size_t n = 0; n < graph().nodes().size(); ++n) {
    const Node& node = graph().nodes()[n];
    if (!is_unit_part(node)) continue;
    const int64_t offset = view_offset(graph(), node);
    UnitUse& use = unit_uses_.try_emplace(unit_start_of(graph(), node), UnitUse{offset}).first->second;
    use.last_offset = offset;
    use.last_part = static_cast<int32_t>(n);
  }
}

void Executable::bind(std::string_view input, void* data) {
  const Value value = graph().find(input);
  if (!value.valid() || graph().producer(value) >= 0)
    throw InternalError("graph {} has no input {}", graph().name(), input);
  void*& bound = bound_[static_cast<size_t>(graph().output_index(value))];
  resolved_ = resolved_ && bound == data;
  bound = data;
}

void Executable::bind_region(void* data) {
  if (region_ == data) return;
  region_ = data;
  resolved_ = false;
}

void* Executable::address(const Location& location) const {
  if (location.input == Location::kRegion) return static_cast<char*>(region_) + location.offset;
  if (location.input >= 0) return bound_[static_cast<size_t>(location.input)];
  return static_cast<char*>(arena_->data()) + location.offset;
}

void* Executable::region_at(int64_t offset) const {
  if (plan_.region_parts.empty()) return static_cast<char*>(region_) + offset;
  size_t part = 0;
  while (part + 1 < plan_.region_parts.size() && plan_.region_parts[part + 1].begin <= offset) ++part;
  return static_cast<char*>(address(plan_.region_parts[part].at)) + offset - plan_.region_parts[part].begin;
}

void* Executable::output(size_t index) const { return address_of(graph().outputs()[index].value); }

void Executable::resolve() {
  for (const GraphInput& input : graph().inputs()) {
    const int32_t place = plan_.locations[static_cast<size_t>(input.value.id)].input;
    if (place == Location::kArena) continue;  // of a region that passes by
    const bool bound = place == Location::kRegion
                           ? region_ != nullptr
                           : bound_[static_cast<size_t>(graph().output_index(input.value))] != nullptr;
    LOCKSTEP_CHECK(bound || graph().type(input.value).bytes() == 0, "input {} of {} is not bound",
                   graph().name(input.value), graph().name());
  }
  collectives_.require_bound();
  steps_.clear();
  const bool first_time = profile_.empty();  // rebinding keeps what was measured
  for (size_t n = 0; n < plan_.steps.size(); ++n) {
    const Node& node = graph().nodes()[n];
    const bool elsewhere = collectives_.runs(static_cast<int32_t>(n)) || moves_unit(node);
    if (plan_.kernels[n] == nullptr && !elsewhere) continue;
    if (elsewhere) records_ = false;
    Step step{plan_.kernels[n].get(), {}, {}, address(plan_.steps[n].workspace), static_cast<int32_t>(n), 0};
    for (const Value value : node.inputs) step.inputs.push_back(address_of(value));
    for (const Value value : node.outputs) step.outputs.push_back(address_of(value));
    const Cost cost = cost_of(graph(), node);
    if (first_time)
      profile_.push_back({graph().name(node.outputs[0]), std::string(node.op->name), plan_.steps[n].kernel, 0,
                          0, cost.flops, cost.bytes});
    steps_.push_back(std::move(step));
  }
  place_marks();
  resolved_ = true;
}

// The step of a mark may be a view, which nobody runs: what was final after it is final after the step
// before.
void Executable::place_marks() {
  size_t at = 0;
  for (const RegionMark& mark : plan_.region_marks) {
    while (at < steps_.size() && steps_[at].node <= mark.step) ++at;
    if (at > 0) steps_[at - 1].region_ready = mark.bytes;
  }
}

void Executable::run_watched(const std::function<bool(const Node&)>& watch) {
  if (before_run_) before_run_();
  if (!resolved_) resolve();
  for (const Step& step : steps_) {
    put(step);
    stream_.synchronize();
    if (!watch(graph().nodes()[static_cast<size_t>(step.node)])) return;
  }
}

void Executable::put(const Step& step) {
  if (step.kernel != nullptr)
    return stream_.enqueue(*step.kernel, {step.inputs, step.outputs, step.workspace});
  const Node& node = graph().nodes()[static_cast<size_t>(step.node)];
  if (moves_unit(node)) return move_unit(step);
  collectives_.run(step.node, step.inputs, step.outputs, stream_);
}

bool Executable::moves_unit(const Node& node) const {
  return is_unit_part(node) || (gathers_unit(node) && node.op->is_start());
}

// A unit's last part waits for all of it: its memory may be something else's after that.
void Executable::move_unit(const Step& step) {
  LOCKSTEP_CHECK(units_ != nullptr, "nobody brings the units of {}", graph().name());
  const Node& node = graph().nodes()[static_cast<size_t>(step.node)];
  const int32_t start = is_unit_part(node) ? unit_start_of(graph(), node) : step.node;
  const Node& whole = graph().nodes()[static_cast<size_t>(start)];
  const int64_t unit = whole.attributes.integer("unit");
  const UnitUse& use = unit_uses_.at(start);
  if (start == step.node) return units_->start(unit, step.outputs[0], use.last_offset < use.first_offset);
  if (step.node == use.last_part) return units_->wait(unit, 0, graph().type(whole.outputs[0]).bytes());
  const int64_t begin = view_offset(graph(), node);
  units_->wait(unit, begin, begin + graph().type(node.outputs[0]).bytes());
}

void Executable::follow(const RegionReady& ready) {
  if (!resolved_) resolve();
  for (const Step& step : steps_) {
    if (moves_unit(graph().nodes()[static_cast<size_t>(step.node)])) move_unit(step);
    if (ready && step.region_ready > 0) ready(step.region_ready);
  }
  if (ready) ready(plan_.region_bytes);
}

// A device that runs late may tell of a failure at a node behind the one that failed.
void Executable::launch(size_t index) try {
  const Step& step = steps_[index];
  if (!profiling_) return put(step);
  const auto start = std::chrono::steady_clock::now();
  put(step);
  stream_.synchronize();
  ProfileEntry& entry = profile_[index];
  entry.nanoseconds +=
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
  ++entry.runs;
} catch (const DeviceError& error) {
  const auto n = static_cast<size_t>(steps_[index].node);
  throw DeviceError("{} (seen at {} of {}, {})", error.what(), graph().name(graph().nodes()[n].outputs[0]),
                    graph().name(), plan_.steps[n].kernel);
}

void Executable::clear_gaps(size_t& cleared, int64_t bytes) {
  for (; cleared < plan_.region_gaps.size(); ++cleared) {
    const ByteRange& gap = plan_.region_gaps[cleared];
    if (gap.offset + gap.bytes > bytes) return;
    stream_.zero(region_at(gap.offset), gap.bytes);
  }
}

void Executable::enqueue(const RegionReady& ready) {
  if (before_run_) before_run_();
  if (!resolved_) resolve();
  Recording* const recording = ready || profiling_ ? nullptr : recording_here();
  recording != nullptr ? recording->replay() : enqueue_all(ready);
}

Recording* Executable::recording_here() {
  if (!records_) return nullptr;
  auto here = std::ranges::find_if(recorded_, [this](const Recorded& recorded) {
    return recorded.region == region_ && recorded.bound == bound_;
  });
  if (here == recorded_.end()) {
    if (recorded_.size() == kMostRecordings) return nullptr;
    recorded_.push_back({bound_, region_, 0, nullptr});
    here = recorded_.end() - 1;
  }
  if (++here->runs <= kRunsBefore) return nullptr;
  if (here->recording == nullptr) here->recording = stream_.capture([this] { enqueue_all({}); });
  records_ = here->recording != nullptr;
  return here->recording.get();
}

void Executable::enqueue_all(const RegionReady& ready) {
  size_t cleared = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    launch(i);
    const int64_t final_bytes = steps_[i].region_ready;
    if (final_bytes == 0) continue;
    clear_gaps(cleared, final_bytes);
    if (ready) ready(final_bytes);
  }
  clear_gaps(cleared, plan_.region_bytes);
  for (const PlanCopy& copy : plan_.copies)
    stream_.copy(address_of(copy.to), address_of(copy.from), graph().type(copy.from).bytes());
  if (ready) ready(plan_.region_bytes);
}

void Executable::run() {
  enqueue();
  stream_.synchronize();
}

}  // namespace lockstep

#include "runtime/plan.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "graph/op_def.h"
#include "ops/gather_unit.h"

namespace lockstep {
namespace {

MemoryCategory category_of(Role role) {
  switch (role) {
    case Role::kParam:
    case Role::kFrozen: return MemoryCategory::kParameters;
    case Role::kGrad:
    case Role::kStatistic: return MemoryCategory::kGradients;  // one buffer holds both
    case Role::kState: return MemoryCategory::kState;
    case Role::kInput: break;
  }
  return MemoryCategory::kInputs;
}

// Groups values into buffers (views and in-place results join their operand's), then packs the buffers.
class Layout {
 public:
  Layout(const Graph& graph, const std::vector<std::unique_ptr<Kernel>>& kernels, int64_t alignment,
         const Region& region)
      : graph_(graph),
        kernels_(kernels),
        alignment_(alignment),
        region_(region),
        parent_(static_cast<size_t>(graph.value_count())),
        offset_(static_cast<size_t>(graph.value_count()), 0),
        region_offset_(static_cast<size_t>(graph.value_count()), -1) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const Region::Entry& entry : region.entries) {
      const Value input = graph.find(entry.input);
      LOCKSTEP_CHECK(input.valid() && graph.producer(input) < 0, "region entry {} is no input", entry.input);
      region_offset_[static_cast<size_t>(input.id)] = entry.offset;
    }
  }

  void run(Plan& plan) {
    find_last_uses();
    join_views();
    join_updates_with_targets(plan);
    join_inplace();
    pack(plan);
  }

 private:
  int32_t root(Value value) {
    int32_t id = value.id;
    while (parent_[static_cast<size_t>(id)] != id) id = parent_[static_cast<size_t>(id)];
    return id;
  }
  bool is_external(int32_t id) const { return graph_.producer(Value{id}) < 0; }
  // Whether a buffer holds parameters of a unit that was gathered.
  bool is_gathered(int32_t id) const {
    const int32_t producer = graph_.producer(Value{id});
    return producer >= 0 && gathers_unit(node(producer));
  }
  int32_t end_step() const { return static_cast<int32_t>(graph_.nodes().size()); }

  // last_use_ is kept per buffer (at its root): the last step that reads any value in it.
  void find_last_uses() {
    last_use_.assign(parent_.size(), -1);
    for (int32_t n = 0; n < end_step(); ++n) {
      for (const Value input : node(n).inputs) last_use_[static_cast<size_t>(input.id)] = n;
      for (const Value output : node(n).outputs)
        last_use_[static_cast<size_t>(output.id)] = std::max(last_use_[static_cast<size_t>(output.id)], n);
    }
    for (const GraphOutput& output : graph_.outputs())
      last_use_[static_cast<size_t>(output.value.id)] = end_step();
  }

  const Node& node(int32_t n) const { return graph_.nodes()[static_cast<size_t>(n)]; }

  void join_views() {
    for (int32_t n = 0; n < end_step(); ++n) {
      if (!node(n).op->traits.view) continue;
      const Value view = node(n).outputs[0], of = node(n).inputs[0];
      join(view, of);
      offset_[static_cast<size_t>(view.id)] =
          offset_[static_cast<size_t>(of.id)] + view_offset(graph_, node(n));
    }
  }

  // `w <- w_new`: w_new is written straight into w's buffer when nothing reads w after w_new is first
  // written; otherwise it is copied there at the end. Apart from this, inputs belong to the caller and are
  // never overwritten.
  void join_updates_with_targets(Plan& plan) {
    for (const GraphOutput& output : graph_.outputs()) {
      if (!output.target.valid() || output.value == output.target) continue;
      const Value origin{root(output.value)};
      const int32_t writer = graph_.producer(origin);
      const int32_t last_read = last_use_[static_cast<size_t>(output.target.id)];
      const bool direct =
          writer >= 0 &&
          (last_read < writer || (last_read == writer && allows_inplace(writer, output.target, origin)));
      if (!direct) {
        plan.copies.push_back({output.value, output.target});
        continue;
      }
      join(origin, output.target);
      pull_chain(writer, origin, output.target, last_read);
    }
  }

  // What is turned into the update in place may be made in the target's buffer too: a tied table's gradient
  // is written by a product and added to by an embedding.
  void pull_chain(int32_t writer, Value made, Value target, int32_t last_read) {
    for (const InplacePair pair : node(writer).op->inplace) {
      if (!present(writer, pair) || node(writer).outputs[static_cast<size_t>(pair.output)] != made) continue;
      const Value origin{root(node(writer).inputs[static_cast<size_t>(pair.input)])};
      const int32_t producer = graph_.producer(origin);
      if (producer < 0 || last_read >= producer || last_use_[static_cast<size_t>(origin.id)] != writer)
        continue;
      if (graph_.type(origin).bytes() != graph_.type(target).bytes() ||
          uses_of_buffer(writer, origin.id) != 1)
        continue;
      join(origin, target);
      return pull_chain(producer, origin, target, last_read);
    }
  }

  int64_t uses_of_buffer(int32_t n, int32_t buffer) {
    return std::count_if(node(n).inputs.begin(), node(n).inputs.end(),
                         [&](Value input) { return root(input) == buffer; });
  }

  // Operands and results may be optional (sgd without momentum) or any number (fused).
  bool present(int32_t n, InplacePair pair) const {
    return static_cast<size_t>(pair.input) < node(n).inputs.size() &&
           static_cast<size_t>(pair.output) < node(n).outputs.size();
  }

  bool allows_inplace(int32_t n, Value input, Value output) const {
    for (const InplacePair pair : node(n).op->inplace) {
      if (!present(n, pair)) continue;
      if (node(n).inputs[static_cast<size_t>(pair.input)] == input &&
          node(n).outputs[static_cast<size_t>(pair.output)] == output &&
          std::count(node(n).inputs.begin(), node(n).inputs.end(), input) == 1)
        return true;
    }
    return false;
  }

  void join_inplace() {
    for (int32_t n = 0; n < end_step(); ++n)
      for (const InplacePair pair : node(n).op->inplace)
        if (present(n, pair))
          try_inplace(n, node(n).inputs[static_cast<size_t>(pair.input)],
                      node(n).outputs[static_cast<size_t>(pair.output)]);
  }

  void try_inplace(int32_t n, Value input, Value output) {
    const int32_t buffer = root(input);
    if (root(output) != output.id || is_external(buffer) || is_gathered(buffer)) return;
    // Equal shapes too: an operand of as many bytes that is broadcast is read in another order than written.
    if (graph_.type(input).shape != graph_.type(output).shape) return;
    if (graph_.type(input).bytes() != graph_.type(output).bytes()) return;
    for (const Value other : node(n).outputs)
      if (root(other) == buffer) return;
    if (buffer_last_use(buffer) != n) return;
    // Another operand in the same buffer under another name would be overwritten while it is read.
    if (uses_of_buffer(n, buffer) == 1) join(output, input);
  }

  int32_t buffer_last_use(int32_t buffer) const { return last_use_[static_cast<size_t>(buffer)]; }

  void join(Value value, Value into) {
    const int32_t from = root(value);
    const int32_t to = root(into);
    parent_[static_cast<size_t>(from)] = to;
    last_use_[static_cast<size_t>(to)] =
        std::max(last_use_[static_cast<size_t>(to)], last_use_[static_cast<size_t>(from)]);
  }

  void pack(Plan& plan) {
    std::vector<LiveInterval> intervals;
    interval_of_.assign(parent_.size(), -1);
    for (int32_t n = 0; n < end_step(); ++n)
      for (const Value output : node(n).outputs)
        extend(intervals, root(output), n, graph_.type(output).bytes());
    add_region_intervals(plan, intervals);
    mark_saved_activations(intervals);
    const size_t workspaces = intervals.size();
    for (int32_t n = 0; n < end_step(); ++n) {
      const auto& kernel = kernels_[static_cast<size_t>(n)];
      intervals.push_back({kernel ? kernel->workspace_bytes() : 0, n, n, MemoryCategory::kWorkspace, -1});
    }
    const Packing packing = pack_intervals(intervals, alignment_, held_bytes());
    plan.locations.resize(parent_.size());
    for (int32_t id = 0; id < static_cast<int32_t>(parent_.size()); ++id) {
      const int32_t buffer = root(Value{id});
      const int32_t interval = interval_of_[static_cast<size_t>(buffer)];
      Location& at = plan.locations[static_cast<size_t>(id)];
      at = interval >= 0 ? location(packing.offsets[static_cast<size_t>(interval)])
                         : Location{graph_.output_index(Value{buffer}), 0};
      at.offset += offset_[static_cast<size_t>(id)];
      if (passes_by() && in_region(buffer)) {
        const size_t part = part_of(region_offset_[static_cast<size_t>(buffer)]);
        at = location(packing.offsets[part_intervals_[part]]);
        at.offset += region_offset_[static_cast<size_t>(buffer)] - region_.passing[part];
      }
    }
    for (size_t part = 0; part < part_intervals_.size(); ++part)
      plan.region_parts.push_back({region_.passing[part], location(packing.offsets[part_intervals_[part]])});
    for (size_t n = 0; n < plan.steps.size(); ++n)
      plan.steps[n].workspace = location(packing.offsets[workspaces + n]);
    report(plan, intervals, packing);
  }

  bool passes_by() const { return !region_.passing.empty(); }
  // Of the region that is the caller's buffer.
  int64_t held_bytes() const { return passes_by() ? 0 : region_.bytes; }
  size_t part_of(int64_t offset) const {
    const auto& begins = region_.passing;
    return static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), offset) - begins.begin()) - 1;
  }

  Location location(int64_t offset) const {
    if (offset < held_bytes()) return {Location::kRegion, offset};
    return {Location::kArena, offset - held_bytes()};
  }

  bool in_region(int32_t buffer) const { return region_offset_[static_cast<size_t>(buffer)] >= 0; }

  // Makes the interval of a buffer cover step n.
  void extend(std::vector<LiveInterval>& intervals, int32_t buffer, int32_t n, int64_t bytes) {
    if (is_external(buffer) && !in_region(buffer)) return;
    int32_t& index = interval_of_[static_cast<size_t>(buffer)];
    if (index < 0) {
      index = static_cast<int32_t>(intervals.size());
      intervals.push_back(
          {0, n, n, is_gathered(buffer) ? MemoryCategory::kParameters : MemoryCategory::kScratch, -1});
    }
    LiveInterval& interval = intervals[static_cast<size_t>(index)];
    interval.bytes = std::max(interval.bytes, bytes);
    interval.last =
        std::min(end_step() - 1, std::max({interval.last, n, last_use_[static_cast<size_t>(buffer)]}));
  }

  // A region entry lives from its first write to the end; one that is read before it is written holds values
  // of the caller's and lives throughout.
  void add_region_intervals(Plan& plan, std::vector<LiveInterval>& intervals) {
    if (passes_by()) return add_passing_intervals(plan, intervals);
    for (const GraphInput& input : graph_.inputs()) {
      const int32_t id = input.value.id;
      if (!in_region(id)) continue;
      extend(intervals, id, std::max(0, end_step() - 1), graph_.type(input.value).bytes());
      LiveInterval& interval = intervals[static_cast<size_t>(interval_of_[static_cast<size_t>(id)])];
      interval.fixed_offset = region_offset_[static_cast<size_t>(id)];
      interval.last = std::max(0, end_step() - 1);
      interval.category = MemoryCategory::kGradients;
      if (first_read(input.value) <= interval.first) interval.first = 0;
    }
    add_region_gaps(plan, intervals);
  }

  // One for each part; those of the entries take no bytes beside it.
  void add_passing_intervals(Plan& plan, std::vector<LiveInterval>& intervals) {
    const int32_t last = std::max(0, end_step() - 1);
    const size_t parts = region_.passing.size();
    std::vector<int32_t> first(parts, last), final_step(parts, -1);
    const std::vector<int32_t> final_steps = last_touched(plan);
    for (const GraphInput& input : graph_.inputs()) {
      const int32_t id = input.value.id;
      if (!in_region(id)) continue;
      LOCKSTEP_CHECK(first_read(input.value) == end_step(), "{} passes by, and is read before it is written",
                     graph_.name(input.value));
      const size_t part = part_of(region_offset_[static_cast<size_t>(id)]);
      final_step[part] = std::max(final_step[part], final_steps[static_cast<size_t>(id)]);
      int32_t& index = interval_of_[static_cast<size_t>(id)];
      if (index < 0) continue;
      LiveInterval& written = intervals[static_cast<size_t>(index)];
      first[part] = std::min(first[part], written.first);
      written.bytes = 0;
    }
    // A part is handed over when all before it have been.
    for (size_t part = 1; part < parts; ++part)
      final_step[part] = std::max(final_step[part], final_step[part - 1]);
    for (size_t part = 0; part < parts; ++part) {
      const int64_t end = part + 1 < parts ? region_.passing[part + 1] : region_.bytes;
      const int32_t until = part + 2 < parts ? std::min(final_step[part + 2], last) : last;
      part_intervals_.push_back(intervals.size());
      intervals.push_back(
          {end - region_.passing[part], std::min(first[part], until), until, MemoryCategory::kGradients, -1});
    }
    add_region_gaps(plan, intervals);
  }

  // From the front of the region on: the step after which everything up to here is final, and the padding
  // behind it. Norms and updates run over the padding, which must be zero; it is cleared as soon as what lies
  // before it is final, and from then on belongs to nobody.
  void add_region_gaps(Plan& plan, std::vector<LiveInterval>& intervals) {
    struct Part {
      int64_t begin, end;
      int32_t final_step;
    };
    const std::vector<int32_t> final_steps = last_touched(plan);
    std::vector<Part> parts;
    for (const Region::Entry& entry : region_.entries) {
      const Value input = graph_.find(entry.input);
      parts.push_back({entry.offset, entry.offset + graph_.type(input).bytes(),
                       final_steps[static_cast<size_t>(input.id)]});
    }
    parts.push_back({region_.bytes, region_.bytes, -1});
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
    int64_t end = 0;
    int32_t reached = -1;
    for (const Part& part : parts) {
      if (part.begin > end) {
        const int32_t last = std::max(0, end_step() - 1);
        if (!passes_by())
          intervals.push_back(
              {part.begin - end, std::min(reached + 1, last), last, MemoryCategory::kGradients, end});
        plan.region_gaps.push_back({end, part.begin - end});
      }
      end = part.end;
      mark(plan, reached, part.begin);
      reached = std::max(reached, part.final_step);
    }
  }

  // What is final before the first step or only after the last one needs no mark.
  void mark(Plan& plan, int32_t step, int64_t bytes) const {
    if (step < 0 || step >= end_step() || bytes == 0) return;
    if (!plan.region_marks.empty() && plan.region_marks.back().step == step)
      plan.region_marks.back().bytes = bytes;
    else
      plan.region_marks.push_back({step, bytes});
  }

  // Per buffer in the region, the last step that reads or writes it; end_step() where it is copied to after
  // the last step.
  std::vector<int32_t> last_touched(const Plan& plan) {
    std::vector<int32_t> steps(parent_.size(), -1);
    const auto touch = [&](Value value, int32_t n) {
      int32_t& step = steps[static_cast<size_t>(root(value))];
      step = std::max(step, n);
    };
    for (int32_t n = 0; n < end_step(); ++n) {
      for (const Value input : node(n).inputs) touch(input, n);
      for (const Value output : node(n).outputs) touch(output, n);
    }
    for (const PlanCopy& copy : plan.copies)
      for (const Value value : {copy.from, copy.to}) touch(value, end_step());
    // What no step writes may be lent to others up to the end.
    std::replace(steps.begin(), steps.end(), -1, end_step());
    return steps;
  }

  int32_t first_read(Value input) const {
    for (int32_t n = 0; n < end_step(); ++n)
      for (const Value operand : node(n).inputs)
        if (operand == input) return n;
    return end_step();
  }

  // Written before the loss and read after it: what backward saved.
  void mark_saved_activations(std::vector<LiveInterval>& intervals) const {
    if (graph_.outputs().empty()) return;
    const int32_t loss = graph_.producer(graph_.outputs()[0].value);
    for (LiveInterval& interval : intervals)
      if (interval.fixed_offset < 0 && interval.category != MemoryCategory::kGradients &&
          interval.category != MemoryCategory::kParameters && interval.first < loss && interval.last > loss)
        interval.category = MemoryCategory::kActivations;
  }

  void report(Plan& plan, const std::vector<LiveInterval>& intervals, const Packing& packing) const {
    MemoryReport& memory = plan.memory;
    memory.arena_peak = packing.peak - held_bytes();
    memory.region_bytes = held_bytes();
    memory.packed_lower_bound = packing.lower_bound;
    memory.order = packing.order;
    int64_t fullest = -1;
    std::vector<int64_t> live(static_cast<size_t>(end_step()) + 1, 0);
    for (const LiveInterval& interval : intervals)
      for (int32_t n = interval.first; n <= interval.last; ++n)
        live[static_cast<size_t>(n)] += interval.bytes;
    for (int32_t n = 0; n < end_step(); ++n)
      if (live[static_cast<size_t>(n)] > fullest) {
        fullest = live[static_cast<size_t>(n)];
        memory.peak_step = n;
      }
    for (const LiveInterval& interval : intervals)
      if (interval.first <= memory.peak_step && memory.peak_step <= interval.last)
        memory.at_peak[static_cast<size_t>(interval.category)] += interval.bytes;
    for (const auto& kernel : kernels_)
      if (kernel) memory.kernels += kernel->memory();
    memory.at_peak[static_cast<size_t>(MemoryCategory::kKernels)] = memory.kernels.bytes();
    memory.communication = plan.transfers.bytes();
    memory.at_peak[static_cast<size_t>(MemoryCategory::kCommunication)] = memory.communication;
    for (const GraphInput& input : graph_.inputs()) {
      if (in_region(input.value.id)) continue;
      const int64_t bytes = graph_.type(input.value).bytes();
      const MemoryCategory category = category_of(input.role);
      memory.at_peak[static_cast<size_t>(category)] += bytes;
      memory.external += bytes;
    }
  }

  const Graph& graph_;
  const std::vector<std::unique_ptr<Kernel>>& kernels_;
  int64_t alignment_;
  const Region& region_;
  std::vector<int32_t> parent_;
  std::vector<int64_t> offset_;  // per value: from where its buffer begins, in bytes
  std::vector<int32_t> last_use_;
  std::vector<int64_t> region_offset_;  // per value: of an input that lies in the region, else -1
  std::vector<int32_t> interval_of_;    // per buffer
  std::vector<size_t> part_intervals_;  // per part of a region that passes by
};

}  // namespace

Plan make_plan(Graph graph, Backend& backend, const Region& region) {
  Lowered lowered = lower(std::move(graph), backend);
  Plan plan{.graph = std::move(lowered.graph), .replaced = std::move(lowered.replaced)};
  plan.region_bytes = region.bytes;
  plan.transfers = plan_transfers(plan.graph, backend.alignment());
  for (size_t n = 0; n < plan.graph.nodes().size(); ++n) {
    KernelChoice& choice = lowered.choices[n];
    const OpDef& op = *plan.graph.nodes()[n].op;
    PlanStep step{static_cast<int32_t>(n), "view", std::move(choice.refusals), {}};
    if (op.traits.collective)
      step.kernel = fmt::format("group.{}", op.name);
    else if (choice.kernel)
      step.kernel = std::move(choice.name);
    plan.steps.push_back(std::move(step));
    plan.kernels.push_back(std::move(choice.kernel));
  }
  Layout(plan.graph, plan.kernels, backend.alignment(), region).run(plan);
  return plan;
}

}  // namespace lockstep

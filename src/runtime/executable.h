// Executable: a plan with memory. Bind the inputs, run, read the outputs.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collective_steps.h"
#include "runtime/plan.h"
#include "runtime/unit_source.h"

namespace lockstep {

struct ProfileEntry {
  std::string name;  // of the node's first result
  std::string op;
  std::string kernel;
  int64_t runs = 0;
  int64_t nanoseconds = 0;
  double flops = 0;  // per run
  double bytes = 0;
};

class Executable {
 public:
  // With an arena of its own, or one of at least plan.memory.arena_peak bytes that is shared with executables
  // that never run at the same time: outputs are then valid until the next of them runs.
  Executable(Plan plan, Backend& backend, std::shared_ptr<Buffer> arena = nullptr);
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const Plan& plan() const { return plan_; }
  const Graph& graph() const { return plan_.graph; }

  // The buffer of a graph input, of the input's size, on the device. It must outlive run().
  void bind(std::string_view input, void* data);
  // The buffer of the plan's shared region; the inputs that lie in it need no binding of their own.
  void bind_region(void* data);
  // Where a byte of the region lies: in the buffer that was bound, or of one that passes by in the arena.
  void* region_at(int64_t offset) const;
  // The ranks that collectives of this group run over. It must outlive run().
  void bind_group(std::string_view name, Group& group, DeviceTransfers* devices = nullptr) {
    collectives_.bind(name, group, devices);
  }
  // Who brings the parameters of units, where the graph gathers any. It must outlive run().
  void gather_with(UnitSource& source) { units_ = &source; }
  // Called before every run is put on the stream: waits for those who still read what it is about to change.
  void before_run(std::function<void()> wait) { before_run_ = std::move(wait); }
  // Where an output is when the steps have run; valid until they run again.
  void* output(size_t index) const;
  // Puts all steps on the compute stream. Throws InternalError when an input is not bound. On the way `ready`
  // hears how many of the region's first bytes are final once the stream has come to that point; after the
  // last step all of them are. What it puts on the stream runs there.
  using RegionReady = std::function<void(int64_t bytes)>;
  void enqueue(const RegionReady& ready = {});
  // For one that has nothing to compute while its peers run: gathers and hears what they do, in their order.
  void follow(const RegionReady& ready);
  // As enqueue(), and returns when all steps have run.
  void run();

  // Runs step by step; after each one calls watch(node), and stops when it says false.
  void run_watched(const std::function<bool(const Node&)>& watch);
  // Where a value lies. Results share bytes: only right after its step is a value sure to be there.
  void* address_of(Value value) const { return address(plan_.locations[static_cast<size_t>(value.id)]); }

  // While on, run() times every step.
  void set_profiling(bool on) { profiling_ = on; }
  const std::vector<ProfileEntry>& profile() const { return profile_; }

 private:
  struct Step {
    Kernel* kernel;  // null: a collective, or a unit's gather or part
    std::vector<void*> inputs;
    std::vector<void*> outputs;
    void* workspace;
    int32_t node;
    int64_t region_ready;  // bytes of the region that are final after it, where that changes
  };

  void resolve();
  void* address(const Location& location) const;
  void place_marks();
  void put(const Step& step);
  void find_unit_uses();
  bool moves_unit(const Node& node) const;
  void move_unit(const Step& step);
  void launch(size_t index);
  void clear_gaps(size_t& cleared, int64_t bytes);
  void enqueue_all(const RegionReady& ready);
  Recording* recording_here();

  Plan plan_;
  CollectiveSteps collectives_;
  UnitSource* units_ = nullptr;
  // Of a unit that is there for a while: the first and the last of its parts that is used.
  struct UnitUse {
    int64_t first_offset = 0, last_offset = 0;
    int32_t last_part = -1;  // node
  };
  std::map<int32_t, UnitUse> unit_uses_;  // by the node of its start
  Stream& stream_;
  std::shared_ptr<Buffer> arena_;
  std::vector<void*> bound_;
  void* region_ = nullptr;
  std::function<void()> before_run_;
  std::vector<Step> steps_;
  // What ran with the same addresses before, and is worth it, is recorded.
  struct Recorded {
    std::vector<void*> bound;
    void* region = nullptr;
    int64_t runs = 0;
    std::unique_ptr<Recording> recording;
  };
  std::vector<Recorded> recorded_;
  bool records_;
  bool resolved_ = false;
  bool profiling_ = false;
  std::vector<ProfileEntry> profile_;
};

}  // namespace lockstep

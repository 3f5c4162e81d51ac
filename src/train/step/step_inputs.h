// StepInputs: the data of a microbatch on its way into the buffers that the graph reads.
//
// A device with memory of its own has a ring of slots, each with pinned memory and memory of the device: the
// copy of the next microbatch runs on the copy stream while this one computes, and the compute stream moves a
// slot into the graph's buffers when it comes to its microbatch. Executables are bound to those buffers once.
// Where the device works in the host's memory, data is written straight into them.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"

namespace lockstep {

class StepInputs {
 public:
  StepInputs(Backend& backend, const Graph& graph);

  bool has(std::string_view name) const { return entries_.contains(std::string(name)); }
  std::vector<std::string> names() const;  // sorted
  void* address(std::string_view name) const;
  // Data for the next microbatch; what is not given keeps its value. Throws UserError for a wrong name or
  // size.
  void set(std::string_view name, const void* host, int64_t bytes);
  // What was set belongs to the microbatch whose work is put on the compute stream now.
  void submit();
  int64_t device_bytes() const;
  // That the inputs of a graph take on a device.
  static int64_t planned_bytes(const Graph& graph, MemoryKind memory);

 private:
  struct Entry {
    int64_t offset = 0, bytes = 0;
  };
  struct Slot {
    std::unique_ptr<Buffer> pinned, device;
    EventPtr copied;    // the pinned memory may be written again
    EventPtr consumed;  // the device's memory may be
    std::vector<Entry> given;
  };
  static std::unordered_map<std::string, Entry> entries_of(const Graph& graph, int64_t& bytes);

  Backend& backend_;
  int64_t bytes_ = 0;
  std::unordered_map<std::string, Entry> entries_;
  std::unique_ptr<Buffer> inputs_;  // that the graph reads
  std::vector<Slot> slots_;         // none where the device works in the host's memory
  size_t current_ = 0;
};

}  // namespace lockstep

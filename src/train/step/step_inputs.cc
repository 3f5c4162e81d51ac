#include "train/step/step_inputs.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr int kSlots = 2;  // one is read while the other is filled
constexpr int64_t kAlignment = 256;

}  // namespace

std::unordered_map<std::string, StepInputs::Entry> StepInputs::entries_of(const Graph& graph,
                                                                          int64_t& bytes) {
  std::unordered_map<std::string, Entry> entries;
  for (const GraphInput& input : graph.inputs()) {
    if (input.role != Role::kInput && input.role != Role::kState) continue;
    const int64_t size = graph.type(input.value).bytes();
    entries[graph.name(input.value)] = {bytes, size};
    bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  return entries;
}

int64_t StepInputs::planned_bytes(const Graph& graph, MemoryKind memory) {
  int64_t bytes = 0;
  entries_of(graph, bytes);
  return memory == MemoryKind::kHost ? bytes : bytes * (1 + kSlots);
}

StepInputs::StepInputs(Backend& backend, const Graph& graph)
    : backend_(backend), entries_(entries_of(graph, bytes_)), inputs_(backend.allocate(bytes_)) {
  if (backend.memory() == MemoryKind::kHost) return;
  for (int i = 0; i < kSlots; ++i)
    slots_.push_back(
        {backend.allocate(bytes_, MemoryKind::kPinned), backend.allocate(bytes_), nullptr, nullptr, {}});
}

std::vector<std::string> StepInputs::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

void* StepInputs::address(std::string_view name) const {
  return static_cast<char*>(inputs_->data()) + entries_.at(std::string(name)).offset;
}

void StepInputs::set(std::string_view name, const void* host, int64_t bytes) {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end()) throw UserError("the model has no input {}", name);
  const Entry& entry = found->second;
  if (entry.bytes != bytes) throw UserError("input {} takes {} bytes, got {}", name, entry.bytes, bytes);
  if (slots_.empty()) return backend_.compute().copy(address(name), host, bytes);
  Slot& slot = slots_[current_];
  if (slot.copied) slot.copied->wait();
  char* const pinned = static_cast<char*>(slot.pinned->data()) + entry.offset;
  std::memcpy(pinned, host, static_cast<size_t>(bytes));
  Stream& copies = backend_.stream(StreamKind::kCopy);
  if (slot.given.empty() && slot.consumed) copies.wait(slot.consumed);
  copies.copy(static_cast<char*>(slot.device->data()) + entry.offset, pinned, bytes);
  slot.given.push_back(entry);
}

void StepInputs::submit() {
  if (slots_.empty()) return;
  Slot& slot = slots_[current_];
  if (slot.given.empty()) return;
  current_ = (current_ + 1) % slots_.size();
  Stream& copies = backend_.stream(StreamKind::kCopy);
  Stream& compute = backend_.compute();
  const auto at = [](Buffer& buffer, const Entry& entry) {
    return static_cast<char*>(buffer.data()) + entry.offset;
  };
  slot.copied = copies.record();
  compute.wait(slot.copied);
  for (const Entry& entry : slot.given)
    compute.copy(at(*inputs_, entry), at(*slot.device, entry), entry.bytes);
  slot.consumed = compute.record();
  slot.given.clear();
}

int64_t StepInputs::device_bytes() const {
  return inputs_->bytes() * (1 + static_cast<int64_t>(slots_.size()));
}

}  // namespace lockstep

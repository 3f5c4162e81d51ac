#include "train/state/group_memory.h"

namespace lockstep {
namespace {

template <typename Memory>
class GroupMemory : public Buffer {
 public:
  explicit GroupMemory(Memory memory) : memory_(std::move(memory)) {}
  void* data() override { return memory_.data(); }
  int64_t bytes() const override { return memory_.bytes(); }

 private:
  Memory memory_;
};

}  // namespace

std::unique_ptr<Buffer> peer_memory(Group& group, int64_t bytes) {
  return std::make_unique<GroupMemory<SharedBuffer>>(group.allocate(bytes));
}

std::unique_ptr<Buffer> host_memory(Group& group, int64_t bytes) {
  return std::make_unique<GroupMemory<HostBuffer>>(group.allocate_for_host(bytes, "memory for the state"));
}

}  // namespace lockstep

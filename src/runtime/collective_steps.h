// Runs the collectives of a plan over groups of ranks (comm/group.h): the one kind of step that no backend
// has a kernel for.
//
// A start begins its transfer on the group's own thread, while later steps compute; the done waits for it.
// Where nothing is computed in between, the transfer runs at once on the calling thread. The order of a
// group's transfers is that of the plan, which is the same on all of its ranks.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "comm/group.h"
#include "runtime/device_transfers.h"

namespace lockstep {

class CollectiveSteps {
 public:
  // The plan must outlive this.
  CollectiveSteps(const TransferPlan& plan, size_t nodes, Backend& backend);

  // The group of this name, which must outlive the runs, and how its ranks reach each other's devices, if
  // they do. Throws InternalError when it cannot carry what the plan wants of it.
  void bind(std::string_view name, Group& group, DeviceTransfers* devices = nullptr);
  void require_bound() const;
  bool runs(int32_t node) const { return transfer_of_[static_cast<size_t>(node)] >= 0; }
  // What the stream has been given before is finished first: peers read the operand.
  void run(int32_t node, std::span<void* const> inputs, std::span<void* const> outputs, Stream& stream);

 private:
  struct Bound {
    Group* group = nullptr;
    DeviceTransfers* devices = nullptr;
    SharedBuffer buffer;  // of the host, for what devices do not move
  };

  void start(size_t index, std::span<void* const> inputs, Stream& stream);
  void finish(size_t index, void* result);
  std::byte* place_of(const Transfer& transfer);
  void pack_operand(const Transfer& transfer, const void* tensor, std::byte* operand);
  void unpack_result(const Transfer& transfer, const std::byte* result, void* tensor);

  const TransferPlan& plan_;
  Backend& backend_;
  std::vector<int32_t> transfer_of_;  // per node: its transfer, or -1
  std::map<std::string, Bound, std::less<>> groups_;
  std::vector<Group::Ticket> tickets_;  // per transfer, while it is under way
  std::vector<std::byte> host_copy_;    // of a tensor that the host cannot touch where it is
};

}  // namespace lockstep

// DeviceTransfers: the transfers of plans between neighbours who reach each other's device memory
// (runtime/device_reach.h), which are tensor ranks for the most part.
//
// A start copies its operand, on the compute stream, to a place that neighbours read; the group meets when
// all operands are there; the done puts the sum over all places, or their copies, on the compute stream:
// nothing passes through the host, which waits once for each transfer. Neighbours may still read a place when
// this rank is done with the transfer. They have when the group has met for something that was begun after
// that, so that two sets of places in turns are enough where transfers follow each other; elsewhere it meets
// once more.
#pragma once
#include <map>
#include <memory>

#include "runtime/device_reach.h"
#include "runtime/transfers.h"

namespace lockstep {

class DeviceTransfers {
 public:
  // Null where the ranks of the group do not reach each other's memory, or the job wants another way. All
  // ranks call it together.
  static std::unique_ptr<DeviceTransfers> between(Group& group, Backend& backend, const DeviceWay& way);

  std::string text() const { return reach_.text(); }
  // The same on all ranks.
  static bool moves(const Transfer& transfer);
  // So that all transfers of a plan have room. Before the first one.
  void reserve(int64_t bytes) { wanted_ = std::max(wanted_, bytes); }
  int64_t bytes() const { return 2 * wanted_; }

  void start(const Transfer& transfer, const void* operand);
  void finish(const Transfer& transfer, void* result);

 private:
  DeviceTransfers(Group& group, Backend& backend, const DeviceWay& way);
  void open();
  void meet_again();
  std::byte* place(int rank, size_t set, const Transfer& transfer) const;

  struct UnderWay {
    size_t set = 0;
    int64_t meeting = 0;
    Group::Ticket ticket = nullptr;
  };

  Group& group_;
  Backend& backend_;
  DeviceReach reach_;
  std::vector<uint8_t> merges_;
  int64_t wanted_ = 0, opened_ = 0;  // bytes of a set
  std::unique_ptr<PeerBuffers> places_;
  std::map<const Transfer*, UnderWay> under_way_;
  size_t next_set_ = 0;
  int64_t started_ = 0, met_ = 0;     // meetings, counted from 1
  std::array<int64_t, 2> read_ = {};  // how many had been started when a set was last read from
};

}  // namespace lockstep

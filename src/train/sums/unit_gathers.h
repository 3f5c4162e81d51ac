// UnitGathers: the parameters of units, gathered by all workers out of the pieces that each owns (ZeRO-3),
// while others compute on the unit before. All run the same plan, so that all gather in the same order.
#pragma once
#include <map>
#include <vector>

#include "backend/backend.h"
#include "comm/group.h"
#include "passes/pipeline.h"
#include "runtime/device_reach.h"
#include "runtime/unit_source.h"
#include "train/state/group_memory.h"
#include "train/state/ownership.h"

namespace lockstep {

// What a graph is told of the units of buckets; none where parameters are not split.
std::vector<ParamUnit> param_units(const FlatLayout& layout, const Buckets& buckets);
std::vector<ParamUnit> param_units(const FlatLayout& layout, const Ownership& ownership);

class UnitGathers : public UnitSource {
 public:
  // `owned`: the parameters that this worker owns, one piece after another, on the device. `reach`, and what
  // neighbours own: where devices reach each other; else null.
  UnitGathers(Group& group, Backend& backend, const void* owned, const FlatLayout& layout,
              const Ownership& ownership, const DeviceReach* reach, std::unique_ptr<PeerBuffers> peers);

  void start(int64_t unit, void* into, bool from_the_end) override;
  void wait(int64_t unit, int64_t begin, int64_t end) override;
  double seconds() const { return seconds_; }  // spent waiting so far
  int64_t bytes() const { return staging_.bytes(); }
  static int64_t planned_bytes(const FlatLayout& layout, const Ownership& ownership, MemoryKind device);

 private:
  // Of a bucket.
  struct Piece {
    Slice bucket;
    Slice own;
    int64_t held = 0;  // elements that this worker owns before it
  };
  // The same of every worker, where devices reach each other.
  struct PeerPiece {
    Slice own;  // of the layout
    int64_t held = 0;
    int rank = 0;
  };
  void find_peer_pieces(const FlatLayout& layout, const Ownership& ownership);
  Group::Ticket between_devices(size_t unit, char* into, const std::string& label);
  // To partners on other hosts, and from them: into the unit, or where neighbours reach it.
  void send(size_t unit, char* into) const;
  void copy_from_peers(size_t unit, char* into) const;
  struct UnderWay {
    int64_t begin, end;  // bytes of the unit
    Group::Ticket ticket;
  };
  Group::Ticket start(const Piece& piece, char* at, const std::string& label);

  Group& group_;
  Backend& backend_;
  const DeviceReach* reach_;
  std::unique_ptr<PeerBuffers> peers_;
  std::unique_ptr<PeerBuffers> arrived_;  // a unit, of which neighbours copy what came here from other hosts
  const char* owned_;
  int64_t element_;
  std::vector<Slice> units_;
  std::vector<std::vector<Piece>> pieces_;              // per unit
  std::vector<std::vector<PeerPiece>> peer_pieces_;     // per unit
  StagingMemory staging_;                               // where the group does not reach the device's memory
  std::map<int64_t, std::vector<UnderWay>> under_way_;  // by unit
  double seconds_ = 0;
};

}  // namespace lockstep

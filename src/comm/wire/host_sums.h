// The canonical tree in two levels, as one host sees it: what its ranks add up among themselves before
// anything goes to another host, and how the owner of an element completes the tree.
//
// The ranks of a host own a contiguous range of leaves together. Its maximal aligned subtrees are what the
// host sends: one sum where the hosts split the leaves evenly in powers of two, however many ranks it has.
// Every addition is one of the tree over all leaves, so no map of hosts changes a bit.
#pragma once
#include <vector>

#include "comm/sum_program.h"
#include "comm/wire/host_map.h"

namespace lockstep::wire {

class HostSums {
 public:
  HostSums(const LeafSplit& split, const HostMap& map, int host);

  // How many partial sums a host sends.
  int64_t partials(int host) const { return partials_[static_cast<size_t>(host)]; }
  // Whether this host's partial sums are those of its only rank: there is nothing to add up.
  bool sends_as_is() const { return sends_as_is_; }

  // Adds up this host's partial sums from those of its ranks: `sources` in the order of ranks and leaves.
  void combine(SumType type, std::span<const std::byte* const> sources, std::span<std::byte* const> partials,
               int64_t count) const;
  // Completes the tree: of the other hosts their partial sums, of this one those of every rank, all in the
  // order of leaves. `outputs` as in SumProgram.
  void complete(SumType type, std::span<const std::byte* const> sources, std::span<std::byte* const> outputs,
                int64_t count) const {
    whole_.run(type, sources, outputs, count, false);
  }

 private:
  struct Part {
    SumProgram sum;
    size_t first;  // source
  };
  bool sends_as_is_;
  std::vector<int64_t> partials_;
  std::vector<Part> parts_;  // one for each partial sum of this host
  SumProgram whole_;
};

}  // namespace lockstep::wire

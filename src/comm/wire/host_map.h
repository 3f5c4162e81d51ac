// Which host each rank of a group is on.
//
// The ranks of a host are numbered one after the other, so that they own neighbouring leaves of the tree and
// the host has few partial sums to send. Hosts may have different numbers of ranks.
#pragma once
#include <string>
#include <vector>

namespace lockstep::wire {

class HostMap {
 public:
  // names[r] is the host of rank r. UserError where the ranks of a host are not one after the other.
  explicit HostMap(const std::vector<std::string>& names);
  // Every rank on a host of its own: no two share memory.
  static HostMap one_each(int ranks);

  int ranks() const { return static_cast<int>(host_of_.size()); }
  int hosts() const { return static_cast<int>(names_.size()); }
  int host_of(int rank) const { return host_of_[static_cast<size_t>(rank)]; }
  const std::string& name(int host) const { return names_[static_cast<size_t>(host)]; }
  int first(int host) const { return firsts_[static_cast<size_t>(host)]; }
  int size(int host) const {
    return firsts_[static_cast<size_t>(host) + 1] - firsts_[static_cast<size_t>(host)];
  }
  int local_rank(int rank) const { return rank - first(host_of(rank)); }
  // Whether some ranks share memory.
  bool shares() const { return hosts() < ranks(); }
  // "3 hosts with 3 + 3 + 2 ranks"
  std::string text() const;

 private:
  std::vector<int> host_of_;
  std::vector<std::string> names_;
  std::vector<int> firsts_;  // and the number of ranks at the end
};

}  // namespace lockstep::wire

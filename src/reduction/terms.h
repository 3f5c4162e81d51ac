// What a worker tells a Reduction Server about its run when it joins: all workers of a run say the same, but
// for who they are.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/leaf_split.h"
#include "launch/handshake.h"

namespace lockstep::reduction {

inline constexpr ServedProtocol kReductionProtocol{"lockstep-reduce-1", "a Reduction Server"};

struct SessionTerms {
  std::string session = {};  // drawn by the run: another one is another run, whoever knows the token
  int64_t rank = 0;
  int64_t ranks = 1;
  int64_t host = 0;    // of this rank; a host sends one stream of sums, whoever of its ranks carries it
  int64_t leaves = 1;  // of the canonical tree
  std::vector<int64_t> ends = {};  // by host: where its leaves end (comm/leaf_split.h)

  bool same_run(const SessionTerms& other) const {
    return session == other.session && ranks == other.ranks && leaves == other.leaves && ends == other.ends;
  }
  // Of the leaves over hosts.
  LeafSplit split() const { return {leaves, ends}; }
};

std::string to_text(const SessionTerms& terms);
// CommError for what no worker says.
SessionTerms parse_terms(std::string_view text);

}  // namespace lockstep::reduction

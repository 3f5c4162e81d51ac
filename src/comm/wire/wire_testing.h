// For the tests of this folder: groups over hosts that are pretended. Every rank is a thread; those of a host
// share memory, and what joins the hosts is given: shared memory too, of which only messages are used.
#pragma once
#include <functional>

#include "comm/ranks_testing.h"
#include "comm/wire/hosts_transport.h"

namespace lockstep::testing {

// {2, 1}: two ranks on the first host, one on the second.
inline wire::HostMap hosts_of(const std::vector<int>& sizes) {
  std::vector<std::string> names;
  for (size_t host = 0; host < sizes.size(); ++host)
    for (int i = 0; i < sizes[host]; ++i) names.push_back("node" + std::to_string(host));
  return wire::HostMap(names);
}

inline std::vector<std::exception_ptr> run_hosts(const std::vector<int>& sizes, const LeafSplit& split,
                                                 const Body& body,
                                                 const shm::ShmOptions& options = test_options()) {
  const wire::HostMap map = hosts_of(sizes);
  shm::ThreadMeeting between(map.ranks());
  std::vector<std::unique_ptr<shm::ThreadMeeting>> local;
  for (const int size : sizes) local.push_back(std::make_unique<shm::ThreadMeeting>(size));
  std::vector<std::exception_ptr> errors(static_cast<size_t>(map.ranks()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < map.ranks(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        const int host = map.host_of(rank);
        shm::ShmOptions local_options = options;
        local_options.first_rank = map.first(host);
        auto neighbours = map.shares()
                              ? local[static_cast<size_t>(host)]->join(map.local_rank(rank), local_options)
                              : nullptr;
        Group group(
            std::make_unique<wire::HostsTransport>(map, std::move(neighbours), between.join(rank, options)),
            split);
        body(group);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// Nothing may go wrong.
inline void on_hosts(const std::vector<int>& sizes, const LeafSplit& split, const Body& body) {
  expect_no_errors(run_hosts(sizes, split, body));
}

// Every way to put `ranks` ranks on hosts.
inline std::vector<std::vector<int>> all_host_maps(int ranks) {
  std::vector<std::vector<int>> maps;
  for (unsigned cuts = 0; cuts < 1U << (ranks - 1); ++cuts) {
    std::vector<int> sizes = {1};
    for (int rank = 1; rank < ranks; ++rank)
      if ((cuts >> (rank - 1) & 1U) != 0)
        sizes.push_back(1);
      else
        ++sizes.back();
    maps.push_back(sizes);
  }
  return maps;
}

}  // namespace lockstep::testing

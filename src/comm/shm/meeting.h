// How the ranks of one host find each other: they meet once, show each other their segments, and part.
//
// Processes meet at a name of Linux's abstract socket namespace, which leaves nothing behind in any ending:
// rank 0 listens, the others bring their segment's file descriptor and get everybody's. Only processes of the
// same user are let in; a visitor who does not speak the protocol is turned away. Threads of one process meet
// in an object and share the mappings.
#pragma once
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/shm/shm_transport.h"

namespace lockstep::shm {

struct ShmOptions {
  WaitLimits limits = {};
  std::chrono::milliseconds meeting_deadline{60000};
  int64_t arena_bytes = 0;  // most that can be allocated; 0: as much as the machine has
  int first_rank = 0;       // what rank 0 here is called where there are more (Members::line)
  int rank_stride = 1;
};

// A name that no other group has.
std::string random_meeting_name();
// Joins as one process of `size`. PeerError when somebody does not come, or comes with another size.
std::unique_ptr<ShmTransport> join_processes(const std::string& name, int rank, int size,
                                             const ShmOptions& options = {});

class ThreadMeeting {
 public:
  explicit ThreadMeeting(int size) : segments_(static_cast<size_t>(size)) {}
  // To be called once by each thread.
  std::unique_ptr<ShmTransport> join(int rank, const ShmOptions& options = {});

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::vector<std::shared_ptr<Segment>> segments_;
};

}  // namespace lockstep::shm

// Messages between two ranks through UCX: each is one tagged message of its own, whose tag says who sends it
// and which of their messages it is.
//
// Those of collectives are counted apart from those of the group's caller: they are started by different
// threads.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "comm/ucx/watch.h"

namespace lockstep::ucx {

enum class Lane : uint8_t { kCaller, kCollective };

class Messages {
 public:
  Messages(Worker& worker, Peers& peers, Watch& watch);
  // The connections are closed already; messages that somebody still holds are over.
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  std::unique_ptr<Message> start_send(Lane lane, int peer, std::span<const std::byte> data);
  std::unique_ptr<Message> start_receive(Lane lane, int peer, std::span<std::byte> data);
  void wait(Message& message);
  int64_t sent_bytes() const { return sent_bytes_; }

 private:
  struct State {
    CollectiveKind kind = CollectiveKind::kNone;
    Lane lane = Lane::kCaller;
    int peer = 0;
    int64_t bytes = 0;
    uint64_t number = 0;      // of this lane, kind and peer
    void* request = nullptr;  // while it is under way
    bool done = false;
    ucs_status_t status = UCS_OK;
    int64_t arrived = 0;
  };
  struct Handle;
  std::unique_ptr<Handle> prepare(Lane lane, CollectiveKind kind, int peer, size_t bytes);
  static void began(State& state, void* request);
  static void sent(void* request, ucs_status_t status, void* state);
  static void received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* state);
  void require_success(const State& state);
  void cancel_receive(State& state);
  // Whoever owns the memory of an unfinished message may free it next, so UCX must be done with it.
  void let_go(Handle& handle) noexcept;
  Collective describe(const State& state) const;

  Worker& worker_;
  Peers& peers_;
  Watch& watch_;
  std::vector<uint64_t> started_;  // by lane, direction and peer
  std::unordered_set<Handle*> held_;
  std::atomic<int64_t> sent_bytes_ = 0;
};

}  // namespace lockstep::ucx

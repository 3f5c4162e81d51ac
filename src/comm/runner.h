// What a Group does with its collectives: counts them, writes them into the ledger, runs them in order on the
// caller's thread or its own, and keeps the first failure.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "comm/group.h"

namespace lockstep {

struct Group::Operation {
  Collective collective = {};
  std::unique_ptr<Message> message = {};  // of a send or receive
  bool done = false;                      // guarded by the runner's mutex
  std::exception_ptr error = {};
};

class Group::Runner {
 public:
  Runner(std::unique_ptr<Transport> transport, const LeafSplit& split, std::string name);
  ~Runner();

  const std::shared_ptr<Transport>& transport() const { return transport_; }
  const LeafSplit& split() const { return split_; }

  // On this thread, unless others are under way: these come first.
  void run(Collective collective);
  Ticket start(Collective collective);
  Ticket start_send(int peer, std::span<const std::byte> data);
  Ticket start_receive(int peer, std::span<std::byte> data);
  bool is_done(const Ticket& ticket);
  void wait(const Ticket& ticket);
  void move_messages();
  void while_waiting(std::function<void()> moves);

 private:
  // Gives the collective its number and the group's name.
  Collective numbered(Collective collective);
  int own_number() const { return transport_->number(transport_->rank()); }
  void perform(const Collective& collective);
  template <typename Body>
  void guarded(const Body& body);
  void remember(std::exception_ptr error, int culprit, const char* verdict);
  void throw_if_broken();
  void serve();

  std::shared_ptr<Transport> transport_;
  LeafSplit split_;
  std::string name_;
  SumProgram canonical_;
  SumProgram fast_;
  uint64_t number_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable finished_;
  std::deque<Ticket> queue_;  // the first one is being run
  std::exception_ptr broken_;
  bool stopping_ = false;
  std::function<void()> moves_;                // by whoever uses the group, while it waits
  std::atomic<std::thread::id> serving_ = {};  // the group's own thread
  std::thread thread_;                         // started with the first operation that is not run at once
};

}  // namespace lockstep

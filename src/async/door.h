// Door: where the processes of an asynchronous run come in. Who connects has to show the token first, on a
// thread of its own and within seconds, so that a stranger holds up nobody.
#pragma once
#include <atomic>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "async/channel.h"

namespace lockstep::async {

class Door {
 public:
  struct Guest {
    std::unique_ptr<Channel> channel;
    std::string name;  // as it gives it
  };

  // Listens when it returns. UserError when the port is in use.
  Door(const HostPort& listen, std::string token);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  HostPort address() const { return {host_, port_}; }
  // Readable when somebody has come in.
  const Descriptor& news() const { return news_; }
  // Those who have come in since the last call.
  std::vector<Guest> guests();
  // Who did not show the token.
  int64_t strangers() const { return strangers_; }

 private:
  struct Visit {
    std::thread thread;
    int descriptor = -1;  // while it is unknown who it is; guarded by the mutex once the thread runs
    std::atomic<bool> over = false;
  };
  void watch() noexcept;
  void admit(Descriptor socket, Visit& visit) noexcept;

  std::string host_;
  std::string token_;
  Descriptor listener_;
  int64_t port_;
  Descriptor news_, stop_;  // eventfds
  std::mutex mutex_;
  std::vector<Guest> guests_;
  std::atomic<int64_t> strangers_ = 0;
  std::list<Visit> visits_;  // of the watching thread
  std::thread thread_;
};

}  // namespace lockstep::async

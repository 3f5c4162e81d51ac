// The rendezvous store: a small TCP server on the host of worker 0, on a thread of its own.
//
// Who connects must prove to know the run's token. Strangers, be they silent, slow or sending garbage, are
// turned away and counted and take nothing from the others: their number, their time, the bytes they may send
// and the lines they cause in the log are bounded. A worker that does not read its answers is dropped too.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "launch/store_connection.h"
#include "launch/store_state.h"

namespace lockstep {

struct StoreOptions {
  HostPort listen = {"127.0.0.1", 0};  // port 0: any free one
  std::string token;
  size_t most_clients = 4096;
  size_t most_strangers = 64;  // who have not shown the token yet
  std::chrono::milliseconds stranger_time{5000};
  std::chrono::milliseconds stuck_time{30000};  // for taking an answer, or finishing a request
};

class StoreServer {
 public:
  // Listens when it returns. UserError when the port is in use.
  explicit StoreServer(StoreOptions options);
  // Sends what is still to be sent, for a second at most.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  HostPort address() const { return {options_.listen.host, port_}; }
  int64_t dropped() const { return dropped_; }

 private:
  void serve() noexcept;
  void serve_once(TimePoint until);
  TimePoint next_deadline() const;
  void accept_all();
  void make_room_for_stranger();
  void receive(StoreConnection& connection);
  void handle(StoreConnection& connection, const StoreMessage& message);
  void challenge(StoreConnection& connection, const StoreMessage& message);
  void check_proof(StoreConnection& connection, const StoreMessage& message);
  void send(StoreConnection& connection, const StoreMessage& message);
  void refuse(StoreConnection& connection, std::string_view why, const std::string& detail,
              const std::string& to_peer);
  void deliver(const std::vector<StoreState::Answer>& answers);
  void drop(StoreConnection& worker, const std::string& why);
  void turn_away(StoreConnection& stranger, std::string_view why, const std::string& detail = {});
  void report_strangers() const;
  void close_finished();
  void drop_late(TimePoint now);

  StoreOptions options_;
  Descriptor listener_;
  Descriptor stop_event_;
  int64_t port_ = 0;
  std::map<StoreState::ClientId, std::unique_ptr<StoreConnection>> connections_;
  StoreState::ClientId next_id_ = 1;
  StoreState state_;
  TimePoint accept_again_ = TimePoint::min();
  std::atomic<int64_t> dropped_ = 0;
  std::map<std::string_view, int64_t> strangers_;  // by why they were turned away
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // last: everything else is there when it starts
};

}  // namespace lockstep

// A Reduction Server: takes the partial sums of every host of a run, chunk by chunk, completes the canonical
// tree, and sends the root back to every host.
//
// It serves one run at a time. Who connects must prove to know the token, and must belong to the run that
// came first. Every connection has a thread that reads and one that writes, so that neither a slow reader nor
// a stranger holds up the others; whoever brings the last part of a chunk adds it up. A worker that is lost,
// or says something that no worker says, ends the session for all: they complete the step without this
// server.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "launch/tcp.h"
#include "reduction/reducer.h"

namespace lockstep::reduction {

struct ServerOptions {
  HostPort listen = {"127.0.0.1", 0};  // port 0: any free one
  std::string token = {};
  int64_t window = 8;          // chunks that a worker may have unanswered
  size_t most_strangers = 64;  // who have not shown the token yet
  std::chrono::milliseconds stranger_time{5000};
  std::chrono::milliseconds tick{1000};  // how often those who wait are told for whom
};

// What a session was, for the log.
struct SessionReport {
  bool broken = false;
  std::string why;  // it broke
  int64_t ranks = 0, chunks = 0, bytes_in = 0, bytes_out = 0;
};

class ReductionServer {
 public:
  // Listens when it returns. UserError when the port is in use.
  explicit ReductionServer(ServerOptions options);
  ~ReductionServer();
  ReductionServer(const ReductionServer&) = delete;
  ReductionServer& operator=(const ReductionServer&) = delete;

  HostPort address() const { return {options_.listen.host, port_}; }
  // Serves until a session has ended; nothing when `stop` became readable first.
  std::optional<SessionReport> serve(const Descriptor& stop);
  int64_t strangers() const { return strangers_; }

 private:
  struct Outgoing {
    HeaderBytes header;
    Bytes payload;
    size_t bytes = 0;
  };
  struct Connection;
  struct Session;

  void accept_all();
  void reap();
  void tick();
  // The reading thread, from the first byte to the last.
  void converse(Connection& connection) noexcept;
  void join(Connection& connection);
  void take_frames(Connection& connection);
  void take_partials(Connection& connection, const FrameHeader& header);
  void write_out(Connection& connection) noexcept;
  void send(Connection& connection, const FrameHeader& header, Bytes payload = {});
  void send_text(Connection& connection, FrameKind kind, const std::string& text);
  void break_session(const std::string& why);
  void close(Connection& connection);
  void left(Connection& connection, const std::string& error);

  ServerOptions options_;
  Descriptor listener_;
  Descriptor news_;  // an eventfd: a session has ended, or a connection
  int64_t port_ = 0;
  std::atomic<int64_t> strangers_ = 0;
  std::mutex mutex_;  // of all below
  std::list<std::unique_ptr<Connection>> connections_;
  std::shared_ptr<Session> session_;
  std::optional<SessionReport> ended_;
  TimePoint next_tick_ = {};
};

}  // namespace lockstep::reduction

// A parameter server (`lockstep serve-params`): holds its part of the model for an asynchronous run, gives
// workers the parameters, takes their gradients, and does what the coordinator orders, in its order.
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "async/door.h"
#include "async/param_shard.h"

namespace lockstep::async {

struct ParamServerOptions {
  HostPort coordinator;
  HostPort listen = {"127.0.0.1", 0};  // for workers
  std::string token;
  int64_t index = 0;  // of all servers, from 1; 0: any
  int threads = 1;
  std::chrono::milliseconds patience{60000};  // to find the coordinator
};

// What it did, for the log.
struct ServedReport {
  int64_t version = 0, updates = 0;
  std::string why;       // the coordinator ended it
  bool stopped = false;  // `stop` became readable first
};

class ParamServer {
 public:
  // Connects to the coordinator and tells it where workers find this server.
  explicit ParamServer(const ParamServerOptions& options);

  // Until the coordinator says that the run is over, or `stop` is readable. CommError where the coordinator
  // is lost or sends what it should not.
  ServedReport serve(const Descriptor& stop);

 private:
  struct Worker {
    std::unique_ptr<Channel> channel;
    int64_t number = 0;  // 0: it has not said it yet
    bool over = false;
  };
  // False when the run is over.
  bool obey(const AsyncHeader& header, std::span<const std::byte> payload);
  void hear(Worker& worker, const AsyncHeader& header, std::span<const std::byte> payload);
  void give(const AsyncHeader& header, int64_t worker);
  void move_workers(const std::vector<int>& readable);
  ParamShard& shard();

  std::unique_ptr<Backend> backend_;
  Door door_;
  std::unique_ptr<Channel> coordinator_;
  std::optional<ParamShard> shard_;
  std::vector<Worker> workers_;
  ServedReport report_;
  bool over_ = false;
};

}  // namespace lockstep::async

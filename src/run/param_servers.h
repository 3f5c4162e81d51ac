// ParamServers: the coordinator's side of the parameter servers of an asynchronous run
// (async/param_server.h): which range of the model each has, its state there and back, and orders that all
// get in the same sequence.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/channel.h"
#include "async/param_shard.h"
#include "prepare/job_parts.h"

namespace lockstep {

// The elements of the flat buffers that each of so many servers holds, in whole blocks. UserError where there
// are fewer blocks than servers.
std::vector<Slice> server_slices(const FlatLayout& layout, int64_t servers);

class ParamServers {
 public:
  // UserError for a model that servers cannot hold.
  ParamServers(const JobParts& parts, TrainStep& train);

  int64_t count() const { return static_cast<int64_t>(slices_.size()); }
  // One has come: as which (-1: whichever is missing), and where workers find it.
  void add(int64_t index, std::unique_ptr<async::Channel> channel, std::string address);
  bool complete() const;
  std::string missing() const;  // who has not come
  // Where workers find them, as workers are told (run/async_worker.cc).
  std::string addresses() const;
  // Gives them the state of the run, which is that version after so many updates.
  void load(int64_t version, int64_t updates);
  // The same to all.
  void order(const async::AsyncHeader& header, std::string_view payload = {});
  // Asks for the state; `wait` lets some time go by, with a call of move() in it. The run's state is theirs
  // then.
  void gather(const std::function<void()>& wait);

  template <typename Visit>
  void each_channel(const Visit& visit) const {
    for (const Server& server : servers_)
      if (server.channel) visit(*server.channel);
  }
  // Takes and sends what can be. CommError that names a server that is lost, or one that has said nothing for
  // as long as the deadline.
  void move();
  int64_t bytes() const;  // that have gone to and come from them

 private:
  struct Server {
    std::unique_ptr<async::Channel> channel;
    std::string address;
    async::ShardSetup setup;
    int64_t missing_bytes = 0;  // of the state that was asked for
    std::chrono::steady_clock::time_point last_word = {};
    int64_t received = 0;   // at the last word
    bool is_asked = false;  // a ping is unanswered
  };
  void take(size_t index, const async::AsyncHeader& header, std::span<const std::byte> payload);
  int64_t element_bytes(size_t buffer) const { return element_bytes_[buffer]; }
  std::byte* state_at(size_t index, size_t buffer) const;

  const JobParts& parts_;
  TrainStep& train_;
  std::chrono::duration<double> deadline_;
  std::vector<Slice> slices_;
  std::vector<std::string> buffers_;
  std::vector<int64_t> element_bytes_;  // of each buffer
  std::vector<Server> servers_;
  std::chrono::steady_clock::time_point next_ping_ = {};
};

}  // namespace lockstep

// What the store remembers and who waits for what, without a socket: requests in, answers out.
//
// Bounded: as many keys and bytes as its limits say. A wait ends when what it waits for comes, when its time
// is over, or when a worker is lost, for a run that has lost a worker will not go on.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "launch/store_message.h"
#include "launch/tcp.h"

namespace lockstep {

class StoreState {
 public:
  using ClientId = uint64_t;
  struct Answer {
    ClientId to = 0;
    StoreMessage message;
  };

  // A request by `client`, who is called `name`. Answers (also to others, who waited for it) are appended.
  void handle(ClientId client, const std::string& name, const StoreMessage& request, TimePoint now,
              std::vector<Answer>& answers);
  // The client's connection is over; it said goodbye or did not.
  void left(ClientId client, const std::string& name, bool said_goodbye, std::vector<Answer>& answers);
  // Answers the waits whose time is over.
  void expire(TimePoint now, std::vector<Answer>& answers);
  // When expire has something to do next; TimePoint::max() if nobody waits.
  TimePoint next_deadline() const;

 private:
  struct Wait {
    ClientId client = 0;
    std::string key;
    TimePoint deadline;
  };
  struct Arrival {
    ClientId client = 0;
    std::string name;
    TimePoint deadline;
  };
  struct Barrier {
    int64_t count = 0;
    std::vector<Arrival> arrivals;
  };

  StoreMessage set(const StoreMessage& request, std::vector<Answer>& answers);
  StoreMessage add(const StoreMessage& request, std::vector<Answer>& answers);
  StoreMessage list(const StoreMessage& request) const;
  void get(ClientId client, const StoreMessage& request, TimePoint now, std::vector<Answer>& answers);
  void barrier(ClientId client, const std::string& name, const StoreMessage& request, TimePoint now,
               std::vector<Answer>& answers);
  // False when there is no room for it.
  bool put(const std::string& key, const std::string& value, std::vector<Answer>& answers);

  std::map<std::string, std::string, std::less<>> values_;
  size_t bytes_ = 0;
  std::vector<Wait> waits_;
  std::map<std::string, Barrier> barriers_;
  std::set<std::string> lost_;
};

}  // namespace lockstep

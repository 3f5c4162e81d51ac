// A worker's connection to the rendezvous store. Every call has a deadline and throws a CommError that names
// the store, the operation and, where it is known, the worker that is missing.
#pragma once
#include <map>
#include <mutex>

#include "base/error.h"
#include "launch/store_message.h"
#include "launch/tcp.h"

namespace lockstep {

// The store answered, and has another token.
class TokenRefused : public CommError {
 public:
  using CommError::CommError;
};

class StoreClient {
 public:
  // Tries until the deadline, for the store may be started later. Fails at once when it refuses.
  StoreClient(HostPort address, std::string_view token, std::string name, std::chrono::milliseconds deadline);
  // Says goodbye: a connection that ends without is a worker that is lost.
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  void set(const std::string& key, const std::string& value);
  // Waits for the key to be set.
  std::string get(const std::string& key, std::chrono::milliseconds deadline);
  // The sum; a key that is not set counts as 0.
  int64_t add(const std::string& key, int64_t number);
  std::map<std::string, std::string> list(const std::string& prefix);
  // Returns when `count` workers have come. Otherwise the error says which of worker-0 ... did not.
  void barrier(const std::string& name, int64_t count, std::chrono::milliseconds deadline);

  const std::string& name() const { return name_; }

 private:
  Descriptor connect(TimePoint deadline) const;
  void say_goodbye() const;
  void get_acquainted(std::string_view token, TimePoint deadline);
  // The answer; refusals and losses are thrown.
  StoreMessage ask(const std::string& what, const StoreMessage& request, std::chrono::milliseconds patience);
  StoreMessage exchange(const StoreMessage& request, TimePoint deadline);
  void send(const std::string& bytes, TimePoint deadline);
  StoreMessage receive(TimePoint deadline);

  HostPort address_;
  std::string name_;
  std::mutex mutex_;  // one request at a time
  Descriptor socket_;
  FrameReader reader_{kFrameLimit};
};

}  // namespace lockstep

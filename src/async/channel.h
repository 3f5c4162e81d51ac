// Channel: a connection between two processes of an asynchronous run, who know each other already. Nothing
// waits unless it says so: frames are queued, and moved along by whoever polls.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/frame.h"
#include "launch/handshake.h"
#include "launch/tcp.h"

namespace lockstep::async {

inline constexpr ServedProtocol kAsyncProtocol{"lockstep-async-1", "a process of an asynchronous run"};

using SharedBytes = std::shared_ptr<const std::vector<std::byte>>;

class Channel {
 public:
  using Take = std::function<void(const AsyncHeader& header, std::span<const std::byte> payload)>;

  explicit Channel(Descriptor socket);
  // Connects and shows the token. CommError when this does not come about.
  static std::unique_ptr<Channel> connect(const HostPort& address, std::string_view token,
                                          std::string_view name, TimePoint deadline);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Queues a frame; the header's payload is set to the size of what is given.
  void send(AsyncHeader header, std::string_view payload = {});
  template <typename Fixed>
  void send_fixed(AsyncHeader header, const Fixed& value) {
    send(header, {reinterpret_cast<const char*>(&value), sizeof value});
  }
  // All of it, in as many frames as it takes, each with its offset.
  void send_pieces(AsyncHeader header, const SharedBytes& bytes);

  // Both throw CommError when the connection has ended, or what has come is no frame.
  void write_some();
  void read_some(const Take& take);
  // Until the next frame has come; false when the deadline came first. What is queued is sent meanwhile.
  bool read_one(const Take& take, TimePoint deadline);
  // Sends all that is queued, waiting for it. False when the deadline came first.
  bool flush(TimePoint deadline);

  bool has_unsent() const { return !queue_.empty(); }
  int descriptor() const { return socket_.get(); }
  const std::string& peer() const { return peer_; }
  int64_t bytes_sent() const { return bytes_sent_; }
  int64_t bytes_received() const { return bytes_received_; }

 private:
  struct Queued {
    AsyncHeaderBytes header;
    SharedBytes bytes;
    size_t begin = 0, end = 0;  // of the payload
    size_t sent = 0;            // of the header and the payload
  };
  void queue(const AsyncHeader& header, SharedBytes bytes, size_t begin, size_t end);
  bool fill(std::byte* into, size_t bytes);
  // One frame, if all of it has come.
  bool take_one(const Take& take);

  Descriptor socket_;
  std::string peer_;
  std::deque<Queued> queue_;
  AsyncHeaderBytes in_header_{};
  std::optional<AsyncHeader> incoming_;  // whose payload is under way
  std::vector<std::byte> payload_;
  size_t filled_ = 0;
  int64_t bytes_sent_ = 0, bytes_received_ = 0;
};

}  // namespace lockstep::async

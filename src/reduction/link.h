// A worker's connection to one Reduction Server. It is moved along by whoever runs a collective, without ever
// waiting; what goes wrong with it is remembered, not thrown, since the step can be completed without.
#pragma once
#include <sys/uio.h>

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launch/tcp.h"
#include "reduction/frame.h"
#include "reduction/terms.h"

namespace lockstep::reduction {

class ServerLink {
 public:
  // Connects, shows the token and joins. CommError that names the server when this does not come about.
  ServerLink(int index, const HostPort& address, std::string_view token, const SessionTerms& terms,
             TimePoint deadline);
  // Says goodbye unless it is lost.
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  // "server 2 at 10.0.0.7:4000"
  const std::string& name() const { return name_; }
  bool alive() const { return !lost_; }
  // Why it is lost.
  const std::string& reason() const { return reason_; }
  void lose(std::string reason);

  // Sums that were sent and have no root yet.
  const std::deque<FrameHeader>& unanswered() const { return unanswered_; }
  bool can_send() const {
    return alive() && pieces_.empty() && static_cast<int64_t>(unanswered_.size()) < window_;
  }
  // Sends this header and these pieces, which must stay as they are until the next can_send().
  void send(const FrameHeader& header, std::span<const std::span<const std::byte>> pieces);
  bool sending() const { return alive() && !pieces_.empty(); }
  void write_some();

  // Takes what has come; a root, whole, if it was one. Its bytes lie in root() until the next call.
  std::optional<FrameHeader> read_some();
  const std::byte* root() const { return buffer_.get(); }

  const Descriptor& socket() const { return socket_; }
  // What the server last said that it waits for, and when it last said anything.
  const std::string& waits_for() const { return waits_for_; }
  TimePoint last_word() const { return last_word_; }
  int64_t bytes_sent() const { return bytes_sent_; }
  int64_t bytes_received() const { return bytes_received_; }

 private:
  void join(const SessionTerms& terms, TimePoint deadline);
  bool fill(std::byte* into, size_t bytes);
  void take(const FrameHeader& header);

  std::string name_;
  Descriptor socket_;
  bool lost_ = false;
  std::string reason_;
  int64_t window_ = 1;
  std::deque<FrameHeader> unanswered_;

  HeaderBytes out_header_{};
  std::vector<iovec> pieces_;  // what is left to be sent of a frame

  HeaderBytes in_header_{};
  std::optional<FrameHeader> incoming_;  // whose payload is under way
  size_t filled_ = 0;
  std::unique_ptr<std::byte[]> buffer_;  // of a payload

  std::string waits_for_;
  TimePoint last_word_;
  int64_t bytes_sent_ = 0, bytes_received_ = 0;
};

}  // namespace lockstep::reduction

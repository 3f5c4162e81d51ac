#include "async/channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lockstep::async {

Channel::Channel(Descriptor socket) : socket_(std::move(socket)), peer_(peer_of(socket_)) {
  const int on = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

std::unique_ptr<Channel> Channel::connect(const HostPort& address, std::string_view token,
                                          std::string_view name, TimePoint deadline) {
  Descriptor socket = connect_to(address, deadline);
  greet(socket, kAsyncProtocol, token, name, deadline);
  return std::make_unique<Channel>(std::move(socket));
}

void Channel::queue(const AsyncHeader& header, SharedBytes bytes, size_t begin, size_t end) {
  queue_.push_back({.header = encode(header), .bytes = std::move(bytes), .begin = begin, .end = end});
}

void Channel::send(AsyncHeader header, std::string_view payload) {
  header.payload = static_cast<uint32_t>(payload.size());
  const auto bytes = std::as_bytes(std::span(payload));
  queue(header, std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()), 0, bytes.size());
}

void Channel::send_pieces(AsyncHeader header, const SharedBytes& bytes) {
  for (size_t begin = 0; begin < bytes->size(); begin += kMostPiece) {
    const size_t end = std::min(bytes->size(), begin + kMostPiece);
    header.offset = begin;
    header.payload = static_cast<uint32_t>(end - begin);
    queue(header, bytes, begin, end);
  }
}

void Channel::write_some() {
  while (!queue_.empty()) {
    Queued& next = queue_.front();
    std::array<iovec, 2> pieces;
    size_t count = 0;
    const size_t of_header = std::min(next.sent, next.header.size());
    if (of_header < next.header.size())
      pieces[count++] = {next.header.data() + of_header, next.header.size() - of_header};
    const size_t begin = next.begin + next.sent - of_header;
    if (begin < next.end)
      pieces[count++] = {const_cast<std::byte*>(next.bytes->data()) + begin, next.end - begin};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) throw CommError("the connection broke: {}", std::strerror(errno));
    bytes_sent_ += sent;
    next.sent += static_cast<size_t>(sent);
    if (next.sent == next.header.size() + next.end - next.begin) queue_.pop_front();
  }
}

bool Channel::fill(std::byte* into, size_t bytes) {
  while (filled_ < bytes) {
    const ssize_t got = recv(socket_.get(), into + filled_, bytes - filled_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    if (got == 0) throw CommError("it closed the connection");
    if (got < 0) throw CommError("the connection broke: {}", std::strerror(errno));
    filled_ += static_cast<size_t>(got);
    bytes_received_ += got;
  }
  filled_ = 0;
  return true;
}

bool Channel::take_one(const Take& take) {
  if (!incoming_) {
    if (!fill(in_header_.data(), in_header_.size())) return false;
    incoming_ = decode(in_header_);
    if (payload_.size() < incoming_->payload) payload_.resize(incoming_->payload);
  }
  if (!fill(payload_.data(), incoming_->payload)) return false;
  const AsyncHeader header = *std::exchange(incoming_, std::nullopt);
  take(header, {payload_.data(), header.payload});
  return true;
}

void Channel::read_some(const Take& take) {
  // A bound, so that one that sends without end does not keep the others from being heard.
  constexpr int kMostAtOnce = 64;
  for (int i = 0; i < kMostAtOnce && take_one(take); ++i) {
  }
}

bool Channel::read_one(const Take& take, TimePoint deadline) {
  while (!take_one(take)) {
    write_some();
    pollfd entry{socket_.get(), static_cast<short>(POLLIN | (has_unsent() ? POLLOUT : 0)), 0};
    const int ready = poll(&entry, 1, poll_timeout(deadline));
    if (ready < 0 && errno != EINTR) throw DeviceError("poll: {}", std::strerror(errno));
    if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return false;
  }
  return true;
}

bool Channel::flush(TimePoint deadline) {
  write_some();
  while (has_unsent()) {
    if (!wait_writable(socket_, deadline)) return false;
    write_some();
  }
  return true;
}

}  // namespace lockstep::async

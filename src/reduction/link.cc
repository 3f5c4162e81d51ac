#include "reduction/link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/printable.h"
#include "launch/handshake.h"
#include "launch/placement.h"

namespace lockstep::reduction {
namespace {

using std::chrono::steady_clock;

}  // namespace

ServerLink::ServerLink(int index, const HostPort& address, std::string_view token, const SessionTerms& terms,
                       TimePoint deadline)
    : name_(fmt::format("server {} at {}", index + 1, to_string(address))),
      buffer_(new std::byte[static_cast<size_t>(kLongestChunk)]),
      last_word_(steady_clock::now()) {
  try {
    socket_ = connect_to(address, deadline);
    // What the kernel holds back goes out beside later chunks: no more of it than keeps the link busy.
    constexpr int kUnsent = 128 << 10;
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsent, sizeof kUnsent);
    greet(socket_, kReductionProtocol, token, worker_name(terms.rank), deadline);
    join(terms, deadline);
  } catch (const CommError& error) {
    throw CommError("{} cannot use the Reduction {}: {}", worker_name(terms.rank), name_, error.what());
  }
}

ServerLink::~ServerLink() {
  // One who leaves in the middle of something is not taken for one who has finished.
  if (lost_ || !socket_ || sending() || !unanswered_.empty()) return;
  const HeaderBytes bye = encode(FrameHeader{.kind = FrameKind::kBye});
  ::send(socket_.get(), bye.data(), bye.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ServerLink::join(const SessionTerms& terms, TimePoint deadline) {
  const std::string text = to_text(terms);
  if (text.size() > kMostText) throw CommError("{} hosts are too many for a server", terms.ends.size());
  const std::span payload(reinterpret_cast<const std::byte*>(text.data()), text.size());
  send({.kind = FrameKind::kJoin, .payload = static_cast<uint32_t>(text.size())}, {{payload}});
  while (sending()) {
    if (!wait_writable(socket_, deadline)) throw CommError("it does not take what is sent to it");
    write_some();
  }
  window_ = 0;
  while (alive() && window_ == 0) {
    if (!wait_readable(socket_, deadline)) throw CommError("it does not answer in time");
    read_some();
  }
  if (lost_) throw CommError("{}", reason_);
}

void ServerLink::lose(std::string reason) {
  if (lost_) return;
  lost_ = true;
  reason_ = std::move(reason);
  pieces_.clear();
  socket_.reset();
}

void ServerLink::send(const FrameHeader& header, std::span<const std::span<const std::byte>> pieces) {
  LOCKSTEP_CHECK(pieces_.empty(), "a frame in the middle of another");
  out_header_ = encode(header);
  pieces_.push_back({out_header_.data(), out_header_.size()});
  for (const std::span<const std::byte> piece : pieces)
    pieces_.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  if (header.kind == FrameKind::kPartials) {
    // A server that has nothing to do says nothing: its silence begins here.
    if (unanswered_.empty()) last_word_ = steady_clock::now();
    unanswered_.push_back(header);
  }
  write_some();
}

void ServerLink::write_some() {
  while (sending()) {
    msghdr message{};
    message.msg_iov = pieces_.data();
    message.msg_iovlen = pieces_.size();
    const ssize_t got = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0) return lose(fmt::format("the connection broke: {}", std::strerror(errno)));
    bytes_sent_ += got;
    auto sent = static_cast<size_t>(got);
    size_t done = 0;
    while (done < pieces_.size() && sent >= pieces_[done].iov_len) sent -= pieces_[done++].iov_len;
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(done));
    if (pieces_.empty()) return;
    pieces_[0].iov_base = static_cast<char*>(pieces_[0].iov_base) + sent;
    pieces_[0].iov_len -= sent;
  }
}

// Whether all of it has come.
bool ServerLink::fill(std::byte* into, size_t bytes) {
  while (filled_ < bytes) {
    const ssize_t got = recv(socket_.get(), into + filled_, bytes - filled_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    if (got <= 0) {
      lose(got == 0 ? "it closed the connection"
                    : fmt::format("the connection broke: {}", std::strerror(errno)));
      return false;
    }
    acknowledge(socket_);
    last_word_ = steady_clock::now();
    filled_ += static_cast<size_t>(got);
    bytes_received_ += got;
  }
  filled_ = 0;
  return true;
}

std::optional<FrameHeader> ServerLink::read_some() {
  while (alive()) {
    if (!incoming_) {
      if (!fill(in_header_.data(), in_header_.size())) return {};
      try {
        incoming_ = decode(in_header_);
      } catch (const CommError& error) {
        lose(fmt::format("it sent {}", error.what()));
        return {};
      }
    }
    if (!fill(buffer_.get(), incoming_->payload)) return {};
    const FrameHeader header = *std::exchange(incoming_, std::nullopt);
    if (header.kind != FrameKind::kRoot) {
      take(header);
      continue;
    }
    const auto asked = std::find_if(unanswered_.begin(), unanswered_.end(), [&](const FrameHeader& one) {
      return one.collective == header.collective && one.chunk == header.chunk && one.type == header.type &&
             one.elements == header.elements;
    });
    if (asked == unanswered_.end()) {
      lose("it sent a sum that nobody asked for");
      return {};
    }
    unanswered_.erase(asked);
    waits_for_.clear();
    return header;
  }
  return {};
}

void ServerLink::take(const FrameHeader& header) {
  const std::string text(reinterpret_cast<const char*>(buffer_.get()), header.payload);
  if (header.kind == FrameKind::kWelcome && window_ == 0 && header.chunk > 0 && header.payload == 0)
    window_ = header.chunk;
  else if (header.kind == FrameKind::kWaiting)
    waits_for_ = printable(text);
  else if (header.kind == FrameKind::kBroken)
    lose(fmt::format("it has ended the session: {}", printable(text)));
  else
    lose("it speaks out of turn");
}

}  // namespace lockstep::reduction

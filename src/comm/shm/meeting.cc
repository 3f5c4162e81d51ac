#include "comm/shm/meeting.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/log.h"
#include "comm/peer_error.h"

namespace lockstep::shm {
namespace {

using Clock = std::chrono::steady_clock;

// Changes whenever the layout of a segment does.
constexpr uint64_t kProtocol = 0x4c4b535053484d01;
constexpr int kHelloMilliseconds = 1000;
constexpr auto kRetry = std::chrono::milliseconds(2);

// What goes over the socket, always together with file descriptors.
struct Card {
  uint64_t protocol = kProtocol;
  int32_t rank = 0;
  int32_t size = 0;
  int32_t pid = 0;
};

struct Address {
  sockaddr_un socket{};
  socklen_t length = 0;
};

Address address_of(const std::string& name) {
  Address address;
  address.socket.sun_family = AF_UNIX;
  const std::string full = "lockstep-" + name;
  LOCKSTEP_CHECK(full.size() + 1 < sizeof address.socket.sun_path, "the meeting's name is too long: {}",
                 name);
  std::memcpy(address.socket.sun_path + 1, full.data(), full.size());  // the leading 0 makes it abstract
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + full.size());
  return address;
}

Fd make_socket() {
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) throw CommError("socket: {}", std::strerror(errno));
  return fd;
}

union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(2 * sizeof(int))> bytes;
};

bool send_card(int socket, const Card& card, std::span<const int> fds) {
  iovec body{const_cast<Card*>(&card), sizeof card};
  Control control{};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(fds.size_bytes());
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(fds.size_bytes());
  std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof card);
}

struct Received {
  bool whole = false;  // a card of our protocol with as many descriptors as expected
  Card card;
  std::vector<Fd> fds = {};
};

// Waits at most so long for a card with `expected` descriptors.
Received receive_card(int socket, size_t expected, int milliseconds) {
  Received received;
  pollfd ready{socket, POLLIN, 0};
  if (poll(&ready, 1, milliseconds) <= 0) return received;
  iovec body{&received.card, sizeof received.card};
  Control control{};
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = sizeof control.bytes;
  const ssize_t bytes = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    for (size_t i = 0; i < (one->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(one) + i * sizeof(int), sizeof fd);
      received.fds.emplace_back(fd);
    }
  }
  received.whole = bytes == static_cast<ssize_t>(sizeof received.card) &&
                   received.card.protocol == kProtocol && received.fds.size() == expected;
  return received;
}

// The process at the other end, if it belongs to this user.
int friendly_pid(int socket) {
  ucred who{};
  socklen_t length = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 || who.uid != geteuid()) return -1;
  return who.pid;
}

Fd open_process(int pid) {
  Fd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (fd.get() < 0) throw CommError("pidfd_open of {}: {}", pid, std::strerror(errno));
  return fd;
}

int left_milliseconds(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

// Rank 0's side: lets everybody in, then tells everybody about everybody.
class Host {
 public:
  Host(const std::string& name, int size) : name_(name), members_(static_cast<size_t>(size)) {
    const Address address = address_of(name);
    listener_ = make_socket();
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address.socket), address.length) != 0 ||
        listen(listener_.get(), 2 * kMaxRanks) != 0)
      throw CommError("cannot open the meeting '{}': {}", name, std::strerror(errno));
  }

  std::vector<Member> meet(std::shared_ptr<Segment> own, Clock::time_point deadline) {
    members_[0] = {std::move(own), open_process(getpid()), getpid()};
    sockets_.resize(members_.size());
    for (size_t here = 1; here < members_.size();) here += admit_one(deadline) ? 1 : 0;
    for (size_t to = 1; to < members_.size(); ++to)
      for (size_t about = 0; about < members_.size(); ++about) introduce(to, about);
    return std::move(members_);
  }

 private:
  bool admit_one(Clock::time_point deadline) {
    pollfd ready{listener_.get(), POLLIN, 0};
    if (poll(&ready, 1, left_milliseconds(deadline)) <= 0) throw_missing();
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() < 0) return false;
    const int pid = friendly_pid(socket.get());
    Received visitor =
        receive_card(socket.get(), 1, std::min(kHelloMilliseconds, left_milliseconds(deadline)));
    const auto rank = static_cast<size_t>(visitor.card.rank);
    if (pid < 0 || !visitor.whole) {
      log_warn("meeting '{}': turned away a visitor (pid {}) who is no rank of this version", name_, pid);
      return false;
    }
    if (visitor.card.size != static_cast<int32_t>(members_.size()))
      throw PeerError("meeting", visitor.card.rank,
                      fmt::format("rank {} (pid {}) belongs to a group of {}", rank, pid, visitor.card.size),
                      fmt::format("this group has {} ranks", members_.size()));
    if (rank == 0 || rank >= members_.size() || members_[rank].segment)
      throw PeerError("meeting", visitor.card.rank, fmt::format("two processes claim rank {}", rank),
                      fmt::format("the second has pid {}", pid));
    members_[rank] = {Segment::map(std::move(visitor.fds[0]), visitor.card.rank), open_process(pid), pid};
    sockets_[rank] = std::move(socket);
    return true;
  }

  void introduce(size_t to, size_t about) {
    const Member& member = members_[about];
    const std::array<int, 2> fds = {member.segment->fd(), member.process.get()};
    const Card card{kProtocol, static_cast<int32_t>(about), static_cast<int32_t>(members_.size()),
                    member.pid};
    if (!send_card(sockets_[to].get(), card, fds))
      throw PeerError("meeting", static_cast<int>(to), fmt::format("rank {} hung up", to),
                      std::strerror(errno));
  }

  [[noreturn]] void throw_missing() const {
    std::string missing;
    int first = -1;
    for (size_t rank = 1; rank < members_.size(); ++rank) {
      if (members_[rank].segment) continue;
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
      if (first < 0) first = static_cast<int>(rank);
    }
    throw PeerError("meeting", first, fmt::format("rank {} did not come within the deadline", missing),
                    "they may have failed to start");
  }

  std::string name_;
  Fd listener_;
  std::vector<Member> members_;
  std::vector<Fd> sockets_;
};

std::vector<Member> visit(const std::string& name, int rank, int size, const std::shared_ptr<Segment>& own,
                          Clock::time_point deadline) {
  const Address address = address_of(name);
  Fd socket = make_socket();
  while (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.socket), address.length) != 0) {
    if (Clock::now() >= deadline)
      throw PeerError("meeting", 0, "rank 0 did not open the meeting within the deadline",
                      "it may have failed to start");
    std::this_thread::sleep_for(kRetry);
  }
  if (friendly_pid(socket.get()) < 0)
    throw PeerError("meeting", 0, "the meeting belongs to another user", "nothing was shown to it");
  const std::array<int, 1> mine = {own->fd()};
  send_card(socket.get(), {kProtocol, rank, size, getpid()}, mine);
  std::vector<Member> members(static_cast<size_t>(size));
  for (int count = 0; count < size; ++count) {
    Received one = receive_card(socket.get(), 2, left_milliseconds(deadline));
    if (!one.whole || one.card.rank != count || one.card.size != size)
      throw PeerError("meeting", 0, "rank 0 ended the meeting", "its own message says why");
    members[static_cast<size_t>(count)] = {count == rank ? own : Segment::map(std::move(one.fds[0]), count),
                                           std::move(one.fds[1]), one.card.pid};
  }
  return members;
}

}  // namespace

std::string random_meeting_name() {
  std::array<uint64_t, 2> words{};
  if (getrandom(words.data(), sizeof words, 0) != sizeof words)
    throw CommError("getrandom: {}", std::strerror(errno));
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

std::unique_ptr<ShmTransport> join_processes(const std::string& name, int rank, int size,
                                             const ShmOptions& options) {
  const auto deadline = Clock::now() + options.meeting_deadline;
  auto own = Segment::create(rank, size, options.arena_bytes);
  Members members{rank, {options.first_rank, options.rank_stride, size}, {}};
  members.all = rank == 0 ? Host(name, size).meet(own, deadline) : visit(name, rank, size, own, deadline);
  return std::make_unique<ShmTransport>(std::move(members), options.limits);
}

std::unique_ptr<ShmTransport> ThreadMeeting::join(int rank, const ShmOptions& options) {
  const auto size = static_cast<int>(segments_.size());
  auto own = Segment::create(rank, size, options.arena_bytes);
  Members members{rank, {options.first_rank, options.rank_stride, size}, {}};
  std::unique_lock lock(mutex_);
  segments_[static_cast<size_t>(rank)] = std::move(own);
  all_here_.notify_all();
  const bool complete = all_here_.wait_for(lock, options.meeting_deadline, [&] {
    return std::all_of(segments_.begin(), segments_.end(), [](const auto& one) { return one != nullptr; });
  });
  if (!complete) throw PeerError("meeting", -1, "not all threads came within the deadline", "none was lost");
  for (const auto& segment : segments_) members.all.push_back({segment, Fd(), getpid()});
  return std::make_unique<ShmTransport>(std::move(members), options.limits);
}

}  // namespace lockstep::shm

#include "reduction/server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "launch/handshake.h"

namespace lockstep::reduction {
namespace {

using std::chrono::steady_clock;

// The threads of a library take no signals: these belong to whoever waits for them.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// Waits as long as it takes: whoever wants it to end shuts the socket down. False at its end.
bool read_all(const Descriptor& socket, std::byte* into, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = recv(socket.get(), into, bytes, 0);
    if (got > 0) {
      acknowledge(socket);
      into += got;
      bytes -= static_cast<size_t>(got);
    } else if (got == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool write_all(const Descriptor& socket, std::span<iovec> pieces) {
  while (!pieces.empty()) {
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    ssize_t sent = sendmsg(socket.get(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    while (!pieces.empty() && static_cast<size_t>(sent) >= pieces.front().iov_len) {
      sent -= static_cast<ssize_t>(pieces.front().iov_len);
      pieces = pieces.subspan(1);
    }
    if (pieces.empty()) break;
    pieces.front().iov_base = static_cast<char*>(pieces.front().iov_base) + sent;
    pieces.front().iov_len -= static_cast<size_t>(sent);
  }
  return true;
}

// Handshakes need deadlines, streams of sums need nothing but the next byte.
void make_blocking(const Descriptor& socket) {
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

// Of a single read; zero: as long as it takes.
void limit_reads(const Descriptor& socket, std::chrono::milliseconds time) {
  const timeval limit{.tv_sec = time.count() / 1000, .tv_usec = time.count() % 1000 * 1000};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

// Nobody leaves before all have the roots of all sums that it took part in.
std::string left_text(int64_t rank) { return fmt::format("rank {} has left, and others go on", rank); }

void notify(const Descriptor& event) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event.get(), &one, sizeof one);
}

}  // namespace

struct ReductionServer::Session {
  explicit Session(const SessionTerms& of) : terms(of), reducer(of) {}
  SessionTerms terms;
  Reducer reducer;
  std::set<int64_t> joined, said_goodbye;
  std::atomic<int64_t> chunks = 0, bytes_in = 0, bytes_out = 0;
  bool over = false;
};

struct ReductionServer::Connection {
  explicit Connection(Descriptor descriptor) : socket(std::move(descriptor)), peer(peer_of(socket)) {}
  Descriptor socket;
  std::string peer;
  std::string name;  // once it has shown the token
  std::thread reader, writer;
  // Set before the first frame of sums; read by its own thread and, under the server's mutex, by others.
  std::shared_ptr<Session> session;
  SessionTerms terms;
  bool known = false, over = false, reader_done = false;

  std::mutex out_mutex;
  std::condition_variable out_wake;
  std::deque<Outgoing> outbox;
  bool closing = false;  // after what is in the outbox
  std::atomic<int64_t> unanswered = 0;
  uint64_t last_collective = 0;
};

ReductionServer::ReductionServer(ServerOptions options) : options_(std::move(options)) {
  LOCKSTEP_CHECK(!options_.token.empty(), "a server without a token");
  listener_ = listen_on(options_.listen);
  port_ = bound_port(listener_);
  news_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!news_) throw DeviceError("eventfd: {}", std::strerror(errno));
}

ReductionServer::~ReductionServer() {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& connection : connections_) {
      close(*connection);
      shutdown(connection->socket.get(), SHUT_RDWR);
    }
  }
  for (const auto& connection : connections_)
    for (std::thread* thread : {&connection->reader, &connection->writer})
      if (thread->joinable()) thread->join();
}

std::optional<SessionReport> ReductionServer::serve(const Descriptor& stop) {
  while (true) {
    std::array<pollfd, 3> entries = {pollfd{listener_.get(), POLLIN, 0}, pollfd{stop.get(), POLLIN, 0},
                                     pollfd{news_.get(), POLLIN, 0}};
    const auto timeout = static_cast<int>(options_.tick.count());
    if (poll(entries.data(), entries.size(), timeout) < 0 && errno != EINTR)
      throw DeviceError("poll: {}", std::strerror(errno));
    uint64_t seen = 0;
    [[maybe_unused]] const ssize_t got = read(news_.get(), &seen, sizeof seen);
    if ((entries[1].revents & POLLIN) != 0) return {};
    if ((entries[0].revents & POLLIN) != 0) accept_all();
    tick();
    reap();
    const std::lock_guard lock(mutex_);
    if (ended_) return std::exchange(ended_, std::nullopt);
  }
}

void ReductionServer::accept_all() {
  const AllSignalsBlocked blocked;
  while (true) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    const std::lock_guard lock(mutex_);
    const auto unknown = std::count_if(connections_.begin(), connections_.end(),
                                       [](const auto& one) { return !one->known && !one->over; });
    if (static_cast<size_t>(unknown) >= options_.most_strangers) {
      ++strangers_;
      continue;  // closed: those who wait have their time, and end
    }
    connections_.push_back(std::make_unique<Connection>(std::move(socket)));
    Connection& connection = *connections_.back();
    connection.reader = std::thread([this, &connection] { converse(connection); });
  }
}

void ReductionServer::reap() {
  std::list<std::unique_ptr<Connection>> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = connections_.begin(); at != connections_.end();) {
      const auto next = std::next(at);
      if ((*at)->reader_done) gone.splice(gone.end(), connections_, at);
      at = next;
    }
  }
  for (const auto& connection : gone)
    for (std::thread* thread : {&connection->reader, &connection->writer})
      if (thread->joinable()) thread->join();
}

// Whoever has sent its part of a chunk and waits is told for whom: it then knows that this server lives.
void ReductionServer::tick() {
  const TimePoint now = steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (now < next_tick_) return;
  next_tick_ = now + options_.tick;
  if (!session_ || session_->over) return;
  std::set<int64_t> told;
  for (const Reducer::WaitingChunk& chunk : session_->reducer.waiting_since(now - options_.tick))
    for (const auto& connection : connections_) {
      if (!connection->known || connection->over || connection->session != session_) continue;
      if (std::find(chunk.ranks.begin(), chunk.ranks.end(), connection->terms.rank) == chunk.ranks.end())
        continue;
      if (!told.insert(connection->terms.rank).second) continue;
      send_text(*connection, FrameKind::kWaiting,
                fmt::format("chunk {} of #{} waits for host {}", chunk.header.chunk, chunk.header.collective,
                            chunk.missing_host));
    }
}

// ---- one connection ----

void ReductionServer::converse(Connection& connection) noexcept {
  std::string error;
  try {
    connection.name = recognise(connection.socket, kReductionProtocol, options_.token,
                                steady_clock::now() + options_.stranger_time);
    make_blocking(connection.socket);
    limit_reads(connection.socket, options_.stranger_time);
    join(connection);
    limit_reads(connection.socket, std::chrono::milliseconds(0));
    take_frames(connection);
  } catch (const std::exception& caught) {
    error = caught.what();
  }
  left(connection, error);
}

void ReductionServer::join(Connection& connection) {
  HeaderBytes bytes;
  if (!read_all(connection.socket, bytes.data(), bytes.size())) throw CommError("it left before it joined");
  const FrameHeader header = decode(bytes);
  if (header.kind != FrameKind::kJoin) throw CommError("something else than a join");
  std::string text(header.payload, '\0');
  if (!read_all(connection.socket, reinterpret_cast<std::byte*>(text.data()), text.size()))
    throw CommError("it left in the middle of a frame");
  const SessionTerms terms = parse_terms(text);
  const std::lock_guard lock(mutex_);
  connection.writer = std::thread([this, &connection] { write_out(connection); });
  const auto refuse = [&](const std::string& why) {
    send_text(connection, FrameKind::kBroken, why);
    throw CommError("it is refused: {}", why);
  };
  if (!session_ || session_->over) {
    session_ = std::make_shared<Session>(terms);
    next_tick_ = steady_clock::now() + options_.tick;
  } else if (!session_->terms.same_run(terms)) {
    refuse("this server works for another run; give every run servers of its own");
  }
  if (!session_->joined.insert(terms.rank).second)
    refuse(fmt::format("rank {} is here already: two processes have the same rank", terms.rank));
  connection.terms = terms;
  connection.session = session_;
  connection.known = true;
  send(connection, {.kind = FrameKind::kWelcome, .chunk = static_cast<uint32_t>(options_.window)});
}

void ReductionServer::take_frames(Connection& connection) {
  HeaderBytes bytes;
  while (true) {
    if (!read_all(connection.socket, bytes.data(), bytes.size())) throw CommError("its connection ended");
    const FrameHeader header = decode(bytes);
    if (header.kind == FrameKind::kBye && header.payload == 0) {
      const std::lock_guard lock(mutex_);
      connection.session->said_goodbye.insert(connection.terms.rank);
      return;
    }
    if (header.kind != FrameKind::kPartials) throw CommError("a frame that no worker sends");
    take_partials(connection, header);
  }
}

void ReductionServer::take_partials(Connection& connection, const FrameHeader& header) {
  Session& session = *connection.session;
  if (header.collective < connection.last_collective)
    throw CommError("a chunk of #{} after one of #{}", header.collective, connection.last_collective);
  connection.last_collective = header.collective;
  // Before memory is taken for them.
  if (int64_t{header.partials} != session.reducer.partials_of(connection.terms.host))
    throw CommError("{} partial sums of host {}, which has {}", header.partials, connection.terms.host,
                    session.reducer.partials_of(connection.terms.host));
  if (++connection.unanswered > options_.window)
    throw CommError("more than {} chunks before the first was answered", options_.window);
  Bytes data(new std::byte[header.payload]);
  if (!read_all(connection.socket, data.get(), header.payload))
    throw CommError("its connection ended in the middle of a chunk");
  session.bytes_in += header.payload;
  const auto root = session.reducer.add({.host = connection.terms.host,
                                         .rank = connection.terms.rank,
                                         .header = header,
                                         .data = std::move(data)});
  const std::lock_guard lock(mutex_);
  if (!session.over && !session.said_goodbye.empty())
    return break_session(left_text(*session.said_goodbye.begin()));
  if (!root) return;
  ++session.chunks;
  for (const auto& other : connections_) {
    if (!other->known || other->over || other->session != connection.session) continue;
    if (std::find(root->ranks.begin(), root->ranks.end(), other->terms.rank) == root->ranks.end()) continue;
    --other->unanswered;
    session.bytes_out += root->header.payload;
    send(*other, root->header, root->data);
  }
}

// The connection is over: a worker that did not say goodbye ends the session for all.
void ReductionServer::left(Connection& connection, const std::string& error) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Session> session = connection.session;
  connection.over = true;
  if (!connection.known) {
    // Each reason is worth a line; a scanner of ports is not worth a disk.
    constexpr int64_t kMostLogged = 16;
    if (++strangers_ <= kMostLogged) log_warn("turned away a stranger at {}: {}", connection.peer, error);
  } else if (!session->over && session == session_) {
    if (!error.empty()) {
      break_session(fmt::format("rank {} at {} is lost: {}", connection.terms.rank, connection.peer, error));
    } else if (!session->reducer.waiting_since(steady_clock::now()).empty()) {
      break_session(left_text(connection.terms.rank));
    } else if (static_cast<int64_t>(session->said_goodbye.size()) == session->terms.ranks) {
      session->over = true;
      ended_ = SessionReport{
          false, "", session->terms.ranks, session->chunks, session->bytes_in, session->bytes_out};
    }
  }
  close(connection);
  connection.reader_done = true;
  notify(news_);
}

// Under the mutex.
void ReductionServer::break_session(const std::string& why) {
  if (session_->over) return;
  session_->over = true;
  ended_ = SessionReport{
      true, why, session_->terms.ranks, session_->chunks, session_->bytes_in, session_->bytes_out};
  for (const auto& connection : connections_) {
    if (connection->session != session_ || connection->over) continue;
    send_text(*connection, FrameKind::kBroken, why);
    close(*connection);
  }
}

// What is in the outbox is still sent; then the writer ends the connection, and the reader notices.
void ReductionServer::close(Connection& connection) {
  const std::lock_guard lock(connection.out_mutex);
  connection.closing = true;
  if (!connection.writer.joinable()) shutdown(connection.socket.get(), SHUT_RDWR);
  connection.out_wake.notify_one();
}

void ReductionServer::send(Connection& connection, const FrameHeader& header, Bytes payload) {
  const std::lock_guard lock(connection.out_mutex);
  if (connection.closing) return;
  connection.outbox.push_back({encode(header), std::move(payload), header.payload});
  connection.out_wake.notify_one();
}

void ReductionServer::send_text(Connection& connection, FrameKind kind, const std::string& text) {
  const auto bytes = static_cast<uint32_t>(std::min<size_t>(text.size(), kMostText));
  Bytes payload(new std::byte[bytes]);
  std::memcpy(payload.get(), text.data(), bytes);
  send(connection, {.kind = kind, .payload = bytes}, std::move(payload));
}

void ReductionServer::write_out(Connection& connection) noexcept {
  while (true) {
    Outgoing next;
    {
      std::unique_lock lock(connection.out_mutex);
      connection.out_wake.wait(lock, [&] { return connection.closing || !connection.outbox.empty(); });
      if (connection.outbox.empty()) break;
      next = std::move(connection.outbox.front());
      connection.outbox.pop_front();
    }
    std::array<iovec, 2> pieces = {iovec{next.header.data(), next.header.size()},
                                   iovec{next.payload.get(), next.bytes}};
    if (!write_all(connection.socket, std::span(pieces).first(next.bytes > 0 ? 2 : 1))) break;
  }
  shutdown(connection.socket.get(), SHUT_RDWR);
}

}  // namespace lockstep::reduction

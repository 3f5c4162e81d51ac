#include "launch/store_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "launch/store_protocol.h"
#include "launch/token.h"

namespace lockstep {
namespace {

using Stage = StoreConnection::Stage;
using std::chrono::steady_clock;

// What one worker may leave unread: two of the longest answers.
constexpr size_t kMostOutput = 2 * kFrameLimit;
// Why strangers are turned away. Each is logged once, and then counted: a scanner of ports cannot fill a
// disk.
constexpr std::string_view kTooMany = "there were too many strangers";
constexpr std::string_view kClosed = "it closed the connection without the token";
constexpr std::string_view kLate = "it did not show the token in time";
constexpr std::string_view kGarbage = "it sent what no worker sends";
constexpr std::string_view kOtherProtocol = "it speaks another protocol";
constexpr std::string_view kWrongToken = "it has another token";
constexpr std::string_view kSameRank = "it claims to be a worker who is here already";
constexpr std::string_view kFull = "there are too many workers";

// The threads of a library take no signals: these belong to whoever waits for them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

StoreServer::StoreServer(StoreOptions options) : options_(std::move(options)) {
  LOCKSTEP_CHECK(!options_.token.empty(), "a store without a token");
  listener_ = listen_on(options_.listen);
  port_ = bound_port(listener_);
  stop_event_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_event_) throw DeviceError("eventfd: {}", std::strerror(errno));
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { serve(); });
}

StoreServer::~StoreServer() {
  stop_ = true;
  const uint64_t one = 1;
  // Its counter cannot be full: nobody else writes to it.
  [[maybe_unused]] const ssize_t written = write(stop_event_.get(), &one, sizeof one);
  thread_.join();
}

void StoreServer::serve() noexcept {
  try {
    while (!stop_) serve_once(TimePoint::max());
    const TimePoint until = steady_clock::now() + std::chrono::seconds(1);
    const auto pending = [&] {
      return std::any_of(connections_.begin(), connections_.end(), [](const auto& entry) {
        return entry.second->known() && !entry.second->output.empty();
      });
    };
    while (pending() && steady_clock::now() < until) serve_once(until);
  } catch (const std::exception& error) {
    log_error("the store has failed: {}", error.what());
  }
  // Whoever still waits learns at once that there is no store any more.
  connections_.clear();
  listener_.reset();
  report_strangers();
}

TimePoint StoreServer::next_deadline() const {
  TimePoint next = state_.next_deadline();
  for (const auto& [id, connection] : connections_) {
    if (!connection->known())
      next = std::min(next, connection->since + options_.stranger_time);
    else if (connection->unfinished())
      next = std::min(next, connection->since + options_.stuck_time);
  }
  if (accept_again_ != TimePoint::min()) next = std::min(next, accept_again_);
  return next;
}

void StoreServer::serve_once(TimePoint until) {
  std::vector<pollfd> entries;
  std::vector<StoreState::ClientId> ids;
  const bool accepting = steady_clock::now() >= accept_again_;
  if (accepting) accept_again_ = TimePoint::min();
  // It stays readable once it is stopping, when there is a time limit; poll passes a negative descriptor
  // over.
  entries.push_back({until == TimePoint::max() ? stop_event_.get() : -1, POLLIN, 0});
  entries.push_back({accepting ? listener_.get() : -1, POLLIN, 0});
  for (const auto& [id, connection] : connections_) {
    ids.push_back(id);
    const short events = static_cast<short>(POLLIN | (connection->output.empty() ? 0 : POLLOUT));
    entries.push_back({connection->socket.get(), events, 0});
  }
  const TimePoint next = std::min(until, next_deadline());
  const int timeout = next == TimePoint::max() ? -1 : poll_timeout(next);
  if (poll(entries.data(), entries.size(), timeout) < 0 && errno != EINTR)
    throw DeviceError("poll: {}", std::strerror(errno));

  const TimePoint now = steady_clock::now();
  for (size_t i = 0; i < ids.size(); ++i) {
    StoreConnection& connection = *connections_.at(ids[i]);
    const short events = entries[i + 2].revents;
    if ((events & POLLOUT) != 0 && !connection.write_some(now)) connection.over = true;
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) receive(connection);
  }
  std::vector<StoreState::Answer> answers;
  state_.expire(now, answers);
  deliver(answers);
  drop_late(now);
  close_finished();
  if ((entries[1].revents & POLLIN) != 0) accept_all();
}

void StoreServer::accept_all() {
  // A bound, so that a flood of connections does not keep the workers waiting.
  constexpr int kMostAtOnce = 64;
  for (int i = 0; i < kMostAtOnce; ++i) {
    Descriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      const int error = errno;
      if (error == EAGAIN || error == EINTR || error == ECONNABORTED) return;
      log_warn("store: cannot take a connection: {}", std::strerror(error));
      accept_again_ = steady_clock::now() + std::chrono::milliseconds(100);
      return;
    }
    make_room_for_stranger();
    const StoreState::ClientId id = next_id_++;
    connections_.emplace(id, std::make_unique<StoreConnection>(id, std::move(socket), steady_clock::now()));
  }
}

// Strangers can only push out strangers, the oldest first: a worker needs a few milliseconds to become known.
void StoreServer::make_room_for_stranger() {
  size_t strangers = 0;
  StoreConnection* oldest = nullptr;
  for (const auto& [id, connection] : connections_) {
    if (connection->known()) continue;
    ++strangers;
    if (oldest == nullptr) oldest = connection.get();
  }
  if (oldest == nullptr || strangers < options_.most_strangers) return;
  turn_away(*oldest, kTooMany);
  close_finished();
}

void StoreServer::receive(StoreConnection& connection) {
  if (connection.over) return;
  if (!connection.read_some(steady_clock::now())) {
    if (!connection.known()) turn_away(connection, kClosed);
    connection.over = true;
    return;
  }
  try {
    while (!connection.over) {
      const auto message = connection.reader.next();
      if (!message) return;
      handle(connection, *message);
    }
  } catch (const CommError& error) {
    if (connection.known())
      drop(connection, fmt::format("it sent {}", error.what()));
    else
      turn_away(connection, kGarbage, error.what());
  }
}

void StoreServer::handle(StoreConnection& connection, const StoreMessage& message) {
  if (connection.stage == Stage::kStranger) {
    challenge(connection, message);
  } else if (connection.stage == Stage::kChallenged) {
    check_proof(connection, message);
  } else if (message.kind == MessageKind::kBye) {
    connection.said_goodbye = connection.over = true;
  } else {
    std::vector<StoreState::Answer> answers;
    state_.handle(connection.id, connection.name, message, steady_clock::now(), answers);
    deliver(answers);
  }
}

void StoreServer::challenge(StoreConnection& connection, const StoreMessage& message) {
  if (message.kind != MessageKind::kHello || message.fields.size() != 3)
    throw CommError("something else than a greeting");
  if (message.fields[0] != kStoreProtocol) {
    refuse(connection, kOtherProtocol, fmt::format("'{:.20}', this is {}", message.fields[0], kStoreProtocol),
           fmt::format("the store speaks protocol {}; install the same version of Lockstep on all hosts",
                       kStoreProtocol));
    return;
  }
  connection.name = message.fields[1];
  connection.client_nonce = message.fields[2];
  connection.server_nonce = random_nonce();
  connection.stage = Stage::kChallenged;
  send(connection, {MessageKind::kChallenge, {connection.server_nonce}});
}

void StoreServer::check_proof(StoreConnection& connection, const StoreMessage& message) {
  if (message.kind != MessageKind::kProof || message.fields.size() != 1)
    throw CommError("something else than a proof");
  const auto proof = [&](std::string_view side) {
    return proof_of(options_.token, side, connection.name, connection.client_nonce, connection.server_nonce);
  };
  if (!same_proof(message.fields[0], proof("client"))) {
    refuse(connection, kWrongToken, "", std::string(kOtherToken));
    return;
  }
  size_t workers = 0;
  for (const auto& [id, other] : connections_) {
    if (!other->known() || other->over) continue;
    ++workers;
    if (other->name != connection.name) continue;
    refuse(connection, kSameRank, fmt::format("{}, from {}", connection.name, other->peer),
           fmt::format("{} is here already, from {}: two processes have the same rank", connection.name,
                       other->peer));
    return;
  }
  if (workers >= options_.most_clients) {
    refuse(connection, kFull, "", "the store has as many clients as it may");
    return;
  }
  connection.stage = Stage::kKnown;
  connection.reader.set_limit(kFrameLimit);
  send(connection, {MessageKind::kWelcome, {proof("server")}});
}

void StoreServer::send(StoreConnection& connection, const StoreMessage& message) {
  const TimePoint now = steady_clock::now();
  // A known connection that had nothing to do starts its clock now.
  if (connection.known() && !connection.unfinished()) connection.since = now;
  connection.output += encode(message);
  if (!connection.write_some(now)) connection.over = true;
  if (connection.output.size() > kMostOutput) drop(connection, "it does not read its answers");
}

void StoreServer::refuse(StoreConnection& connection, std::string_view why, const std::string& detail,
                         const std::string& to_peer) {
  turn_away(connection, why, detail);
  send(connection, {MessageKind::kRefused, {to_peer}});
}

void StoreServer::deliver(const std::vector<StoreState::Answer>& answers) {
  for (const auto& [to, message] : answers) {
    const auto found = connections_.find(to);
    if (found != connections_.end() && !found->second->over) send(*found->second, message);
  }
}

void StoreServer::drop(StoreConnection& worker, const std::string& why) {
  worker.over = true;
  ++dropped_;
  log_warn("store: dropped {} ({}): {}", worker.name, worker.peer, why);
}

void StoreServer::turn_away(StoreConnection& stranger, std::string_view why, const std::string& detail) {
  stranger.over = true;
  ++dropped_;
  if (strangers_[why]++ > 0) return;
  log_warn("store: turned away a stranger at {}: {}{}{}; others like it are only counted", stranger.peer, why,
           detail.empty() ? "" : ": ", detail);
}

void StoreServer::report_strangers() const {
  std::string list;
  for (const auto& [why, count] : strangers_)
    if (count > 1) list += fmt::format("{}{} times {}", list.empty() ? "" : "; ", count, why);
  if (!list.empty()) log_warn("store: strangers were turned away: {}", list);
}

void StoreServer::drop_late(TimePoint now) {
  for (const auto& [id, connection] : connections_) {
    if (connection->over) continue;
    if (!connection->known() && now >= connection->since + options_.stranger_time)
      turn_away(*connection, kLate);
    else if (connection->known() && connection->unfinished() &&
             now >= connection->since + options_.stuck_time)
      drop(*connection, "it got stuck in the middle of a message");
  }
}

// Losing one worker gives answers to others, and sending these can find another one broken.
void StoreServer::close_finished() {
  bool again = true;
  while (again) {
    again = false;
    for (auto at = connections_.begin(); at != connections_.end();) {
      if (!at->second->over) {
        ++at;
        continue;
      }
      const std::unique_ptr<StoreConnection> gone = std::move(at->second);
      at = connections_.erase(at);
      if (!gone->known()) continue;
      std::vector<StoreState::Answer> answers;
      state_.left(gone->id, gone->name, gone->said_goodbye, answers);
      deliver(answers);
      again = true;
    }
  }
}

}  // namespace lockstep

#include "comm/wire/hosts_transport.h"

namespace lockstep::wire {

struct HostsTransport::Routed : Message {
  MessagePort& port;
  std::unique_ptr<Message> message;
  Routed(MessagePort& by, std::unique_ptr<Message> what) : port(by), message(std::move(what)) {}
};

HostsTransport::HostsTransport(const HostMap& map, std::unique_ptr<shm::ShmTransport> local,
                               std::unique_ptr<Transport> between)
    : name_(local ? fmt::format("{} + {}", local->name(), between->name()) : between->name()),
      local_(std::move(local)),
      between_(std::move(between)) {
  collectives_ = std::make_unique<Collectives>(map, between_->collective_messages(), local_.get());
  if (local_) local_->look_beyond(&between_->ledger(), [this] { between_->collective_messages().glance(); });
}

HostsTransport::~HostsTransport() {
  if (local_) local_->look_beyond();
}

bool HostsTransport::is_neighbour(int peer) const {
  const HostMap& map = collectives_->map();
  return local_ && peer >= 0 && peer < map.ranks() && map.host_of(peer) == map.host_of(between_->rank());
}

std::string HostsTransport::host_of(int number) const {
  const HostMap& map = collectives_->map();
  for (int rank = 0; rank < map.ranks(); ++rank)
    if (between_->number(rank) == number) return map.name(map.host_of(rank));
  return {};
}

template <typename Body>
void HostsTransport::naming_hosts(const Body& body) {
  try {
    body();
  } catch (const PeerError& error) {
    const std::string verdict = error.what();
    const std::string host = host_of(error.peer());
    if (host.empty()) throw;
    const std::string place = fmt::format("(rank {} is on {})", error.peer(), host);
    if (verdict.find(place) != std::string::npos) throw;
    throw PeerError(error.operation(), error.peer(), verdict + " " + place);
  }
}

void HostsTransport::run(const Collective& collective, const SumProgram& program) {
  naming_hosts([&] {
    if (local_) return run_noted(collective, program);
    collectives_->run(collective, program);
  });
}

// The group writes into the ledger that goes between hosts; the neighbours read the one in shared memory.
void HostsTransport::run_noted(const Collective& collective, const SumProgram& program) {
  // Only some ranks of a host wait for messages in a small collective; the others would never hear the rest.
  between_->collective_messages().glance();
  Ledger& ledger = local_->ledger();
  ledger.begin(collective, LedgerState::kWaiting);
  try {
    collectives_->run(collective, program);
  } catch (...) {
    ledger.set_state(collective.number, LedgerState::kFailed);
    throw;
  }
  ledger.set_state(collective.number, LedgerState::kDone);
}

template <typename Start>
std::unique_ptr<Message> HostsTransport::route(int peer, const Start& start) {
  const bool near = is_neighbour(peer);
  MessagePort& port = near ? static_cast<MessagePort&>(*local_) : *between_;
  std::unique_ptr<Message> message;
  naming_hosts([&] { message = start(port, near ? collectives_->map().local_rank(peer) : peer); });
  return std::make_unique<Routed>(port, std::move(message));
}

std::unique_ptr<Message> HostsTransport::start_send(int peer, std::span<const std::byte> data) {
  return route(peer, [&](MessagePort& port, int number) { return port.start_send(number, data); });
}

std::unique_ptr<Message> HostsTransport::start_receive(int peer, std::span<std::byte> data) {
  return route(peer, [&](MessagePort& port, int number) { return port.start_receive(number, data); });
}

void HostsTransport::wait(Message& message) {
  auto& routed = static_cast<Routed&>(message);
  naming_hosts([&] { routed.port.wait(*routed.message); });
}

void HostsTransport::move() {
  if (local_) local_->move();
  between_->move();
}

void HostsTransport::while_waiting(std::function<void()> moves) {
  between_->while_waiting(moves);
  if (local_) local_->while_waiting(std::move(moves));
}

void HostsTransport::fail(int culprit, std::string_view verdict) noexcept {
  if (local_) local_->fail(culprit, verdict);
  between_->fail(culprit, verdict);
}

std::string HostsTransport::last_did(int rank) const {
  return is_neighbour(rank) ? local_->last_did(collectives_->map().local_rank(rank))
                            : between_->last_did(rank);
}

}  // namespace lockstep::wire

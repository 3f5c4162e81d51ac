#include "comm/wire/courier.h"

#include <algorithm>

namespace lockstep::wire {

Courier::Courier(const HostMap& map, MessagePort& port, shm::ShmTransport* local)
    : map_(map), port_(port), local_(local), rank_(port.rank()), host_(map.host_of(rank_)) {
  LOCKSTEP_CHECK(map.ranks() == port.size(), "{} for messages between {} ranks", map.text(), port.size());
  LOCKSTEP_CHECK((local != nullptr) == map.shares(), "{} and {}", map.text(),
                 local == nullptr ? "no shared memory" : "shared memory");
  LOCKSTEP_CHECK(
      local == nullptr || (local->size() == map.size(host_) && local->rank() == map.local_rank(rank_)),
      "rank {} of {} sharing memory is rank {} of {}", local->rank(), local->size(), rank_, map.text());
}

std::vector<int> Courier::other_hosts() const {
  std::vector<int> order;
  for (int hop = 1; hop < map_.hosts(); ++hop) order.push_back((host_ + hop) % map_.hosts());
  return order;
}

bool Courier::is_direct(const Collective& collective) const {
  if (local_ == nullptr) return true;
  const int64_t bytes =
      collective.kind == CollectiveKind::kAllToAll ? collective.bytes() * map_.ranks() : collective.bytes();
  return std::all_of(collective.buffers.begin(), collective.buffers.end(),
                     [&](const std::byte* buffer) { return local_->holds(buffer, bytes); });
}

Flight Courier::send(int peer, const std::byte* data, int64_t bytes) {
  unflushed_ = true;
  return {peer, port_.start_send(peer, {data, static_cast<size_t>(bytes)})};
}

Flight Courier::receive(int peer, std::byte* data, int64_t bytes) {
  return {peer, port_.start_receive(peer, {data, static_cast<size_t>(bytes)})};
}

void Courier::wait(Flights& flights, const Collective& collective) {
  for (const Flight& flight : flights) {
    // The neighbours read this ledger; the other hosts have their own ways to know.
    if (local_ != nullptr) local_->ledger().waits_for(collective.number, flight.peer);
    port_.wait(*flight.message);
  }
  if (local_ != nullptr) local_->ledger().waits_for(collective.number, -1);
  flights.clear();
}

std::vector<std::vector<std::byte*>> Courier::meet(const Collective& collective, bool direct,
                                                   std::vector<std::byte*> buffers) {
  if (neighbours() == 1) return {std::move(buffers)};
  // Nothing moves between hosts while this rank waits for its neighbours.
  if (unflushed_) port_.flush();
  unflushed_ = false;
  local_->meet(collective, direct, buffers);
  std::vector<std::vector<std::byte*>> all(static_cast<size_t>(neighbours()));
  for (int local = 0; local < neighbours(); ++local)
    for (int64_t i = 0; i < local_->buffers_of(local); ++i)
      all[static_cast<size_t>(local)].push_back(local_->buffer_of(local, i));
  return all;
}

}  // namespace lockstep::wire

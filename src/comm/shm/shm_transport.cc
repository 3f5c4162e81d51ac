#include "comm/shm/shm_transport.h"

#include <algorithm>
#include <cstring>

namespace lockstep::shm {

ShmTransport::ShmTransport(Members members, WaitLimits limits)
    : members_(std::move(members)),
      watch_(members_, limits),
      collectives_(members_, watch_),
      messages_(members_, watch_),
      arena_(members_.all[static_cast<size_t>(members_.rank)].segment) {}

ShmTransport::~ShmTransport() {
  auto joined = static_cast<uint32_t>(Condition::kJoined);
  members_.own().header().condition.compare_exchange_strong(joined, static_cast<uint32_t>(Condition::kLeft));
  watch_.ring_all();
}

void ShmTransport::run(const Collective& collective, const SumProgram& program) {
  collectives_.run(collective, program);
}

std::unique_ptr<Message> ShmTransport::start_send(int peer, std::span<const std::byte> data) {
  return messages_.start_send(peer, data);
}

std::unique_ptr<Message> ShmTransport::start_receive(int peer, std::span<std::byte> data) {
  return messages_.start_receive(peer, data);
}

void ShmTransport::fail(int culprit, std::string_view verdict) noexcept {
  SegmentHeader& own = members_.own().header();
  // The first verdict stays: what follows from a failure is not its cause.
  if (own.condition.load() != static_cast<uint32_t>(Condition::kJoined)) return;
  own.culprit = culprit;
  const size_t length = std::min(verdict.size(), sizeof own.verdict - 1);
  std::memcpy(own.verdict, verdict.data(), length);
  own.verdict[length] = 0;
  own.condition.store(static_cast<uint32_t>(Condition::kFailed));
  watch_.ring_all();
  watch_.ring(members_.rank);
}

}  // namespace lockstep::shm

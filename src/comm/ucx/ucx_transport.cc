#include "comm/ucx/ucx_transport.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/number_text.h"

namespace lockstep::ucx {
namespace {

// A peer that takes nothing any more is found by the next wait for it.
constexpr std::chrono::milliseconds kParting{1000};

}  // namespace

UcxTransport::UcxTransport(int rank, int size, const Exchange& exchange, const UcxOptions& options)
    : worker_(options),
      peers_(worker_, rank, {options.first_rank, options.rank_stride, size}),
      watch_(worker_, peers_, options.limits),
      messages_(worker_, peers_, watch_),
      collective_port_(*this),
      collectives_(wire::HostMap::one_each(size), collective_port_, nullptr) {
  meet(exchange, options.meeting_deadline);
}

UcxTransport::~UcxTransport() {
  auto lock = worker_.lock();
  watch_.say_goodbye();
  watch_.linger(lock);
  for (int peer = 0; peer < size(); ++peer) peers_.cut(peer, "closed");
  lock.unlock();
  for (const auto& [memory, bytes] : memory_) munmap(memory, bytes);
}

void UcxTransport::meet(const Exchange& exchange, std::chrono::milliseconds deadline) {
  const std::vector<std::string> introductions = exchange(peers_.introduction());
  auto lock = worker_.lock();
  peers_.connect(introductions);
  const int64_t end = steady_now_ns() + deadline.count() * 1'000'000;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == peers_.rank()) continue;
    const Peer& peer = peers_.of(rank);
    worker_.drive(
        lock, [&] { return peer.greeted || peer.gone || steady_now_ns() >= end; }, [] {});
    if (!peer.greeted)
      throw peers_.unreachable(rank, peer.gone ? *peer.gone
                                               : fmt::format("nothing came within {:.1f} s",
                                                             static_cast<double>(deadline.count()) / 1000));
  }
  // Others may still wait for this rank's greeting.
  worker_.flush(lock, deadline);
}

std::byte* UcxTransport::allocate(int64_t bytes) {
  const size_t size = std::max<size_t>(static_cast<size_t>(bytes), 1);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw UserError("no room for {}: {}", bytes_text(bytes), std::strerror(errno));
  const std::lock_guard lock(memory_mutex_);
  memory_[static_cast<std::byte*>(memory)] = size;
  return static_cast<std::byte*>(memory);
}

void UcxTransport::release(std::byte* memory) noexcept {
  const std::lock_guard lock(memory_mutex_);
  const auto found = memory_.find(memory);
  if (found == memory_.end()) return;
  munmap(found->first, found->second);
  memory_.erase(found);
}

void UcxTransport::run(const Collective& collective, const SumProgram& program) {
  collectives_.run(collective, program);
}

std::unique_ptr<Message> UcxTransport::start_send(int peer, std::span<const std::byte> data) {
  return messages_.start_send(Lane::kCaller, peer, data);
}

std::unique_ptr<Message> UcxTransport::start_receive(int peer, std::span<std::byte> data) {
  return messages_.start_receive(Lane::kCaller, peer, data);
}

std::unique_ptr<Message> UcxTransport::Port::start_send(int peer, std::span<const std::byte> data) {
  return transport_.messages_.start_send(Lane::kCollective, peer, data);
}

std::unique_ptr<Message> UcxTransport::Port::start_receive(int peer, std::span<std::byte> data) {
  return transport_.messages_.start_receive(Lane::kCollective, peer, data);
}

void UcxTransport::fail(int culprit, std::string_view verdict) noexcept {
  const auto lock = worker_.lock();
  watch_.give_up(culprit, verdict);
}

std::string UcxTransport::last_did(int rank) const {
  const auto lock = worker_.lock();
  return watch_.last_did(rank);
}

void UcxTransport::Port::enter(const Collective& collective) {
  const auto lock = transport_.worker_.lock();
  transport_.watch_.enter(collective);
}

void UcxTransport::Port::leave(bool finished) noexcept {
  auto lock = transport_.worker_.lock();
  transport_.watch_.leave(finished);
  transport_.worker_.flush(lock, kParting);
}

void UcxTransport::Port::flush() {
  auto lock = transport_.worker_.lock();
  transport_.worker_.flush(lock, kParting);
}

void UcxTransport::move() {
  const auto lock = worker_.lock();
  worker_.move();
}

void UcxTransport::Port::glance() {
  const auto lock = transport_.worker_.lock();
  transport_.watch_.glance();
}

std::unique_ptr<Transport> join(int rank, int size, const Exchange& exchange, const UcxOptions& options) {
  return std::make_unique<UcxTransport>(rank, size, exchange, options);
}

}  // namespace lockstep::ucx

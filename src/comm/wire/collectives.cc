#include "comm/wire/collectives.h"

#include <cstring>

namespace lockstep::wire {
namespace {

// One round of everything sends (H-1) M where two of the parts send 2 (H-1)/H M, but a message takes as long
// to arrive as about so many bytes take to be sent.
constexpr int64_t kWorthARound = 16 << 10;
// Beyond this the sums, which every host makes in one round, are worth sharing out.
constexpr int64_t kMostInOneRound = 64 << 10;

bool fits_in_one_round(int64_t bytes, int64_t hosts) {
  return bytes <= kMostInOneRound && bytes * (hosts - 1) * (hosts - 2) <= kWorthARound * hosts;
}

}  // namespace

Collectives::Collectives(HostMap map, MessagePort& port, shm::ShmTransport* local)
    : map_(std::move(map)), courier_(map_, port, local), rounds_(courier_, rounds_memory_) {}

const HostSums& Collectives::sums_of(const Collective& collective, const SumProgram& program) {
  std::optional<HostSums>& sums = sums_[static_cast<size_t>(collective.order)];
  if (!sums) {
    LOCKSTEP_CHECK(program.split() && program.split()->ranks() == map_.ranks(),
                   "{} with a program for other ranks", map_.text());
    sums.emplace(*program.split(), map_, courier_.host());
  }
  return *sums;
}

void Collectives::run(const Collective& collective, const SumProgram& program) {
  struct Visit {
    explicit Visit(MessagePort& port, const Collective& collective) : port(port) { port.enter(collective); }
    ~Visit() { port.leave(finished); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    MessagePort& port;
    bool finished = false;
  };
  if (collective.kind == CollectiveKind::kHostBarrier && courier_.neighbours() == 1) return;
  Visit visit(courier_.port(), collective);
  move(collective, program);
  visit.finished = true;
}

void Collectives::move(const Collective& collective, const SumProgram& program) {
  const bool in_rounds =
      fits_in_one_round(collective.bytes(), map_.hosts()) || !courier_.is_direct(collective);
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter: {
      const HostSums& sums = sums_of(collective, program);
      if (in_rounds) return rounds_.reduce(collective, sums, program.widest());
      return Pipeline(courier_, memory_, collective, &sums).run();
    }
    case CollectiveKind::kAllGather:
      if (in_rounds && !collective.held_once) return rounds_.gather(collective);
      return Pipeline(courier_, memory_, collective, nullptr).run();
    case CollectiveKind::kBroadcast:
      if (in_rounds) return rounds_.broadcast(collective);
      return Chain(courier_, collective).run();
    case CollectiveKind::kAllToAll: return exchange(collective);
    case CollectiveKind::kBarrier: return rounds_.barrier(collective);
    case CollectiveKind::kHostBarrier: courier_.meet(collective, false, {}); return;
    case CollectiveKind::kNone:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  throw InternalError("{} is not a collective", name_of(collective.kind));
}

// Every piece has one destination, so nothing can be saved between hosts. Neighbours read each other's where
// they can.
void Collectives::exchange(const Collective& collective) {
  const int64_t bytes = collective.bytes();
  const bool direct = courier_.is_direct(collective);
  const auto here =
      courier_.meet(collective, direct, direct ? collective.buffers : std::vector<std::byte*>{});
  const int rank = courier_.rank();
  Flights flights;
  const auto reads_directly = [&](int peer) { return direct && map_.host_of(peer) == courier_.host(); };
  for (int hop = 1; hop < map_.ranks() && bytes > 0; ++hop) {
    const int to = (rank + hop) % map_.ranks();
    const int from = (rank + map_.ranks() - hop) % map_.ranks();
    if (!reads_directly(to)) flights.push_back(courier_.send(to, collective.buffers[0] + to * bytes, bytes));
    if (!reads_directly(from))
      flights.push_back(courier_.receive(from, collective.result + from * bytes, bytes));
  }
  const auto copy_from = [&](int peer, const std::byte* theirs) {
    std::memcpy(collective.result + peer * bytes, theirs + rank * bytes, static_cast<size_t>(bytes));
  };
  copy_from(rank, collective.buffers[0]);
  for (int local = 0; direct && local < courier_.neighbours(); ++local)
    if (local != courier_.local_rank())
      copy_from(map_.first(courier_.host()) + local, here[static_cast<size_t>(local)][0]);
  courier_.wait(flights, collective);
  courier_.meet(collective, direct, {});
}

}  // namespace lockstep::wire

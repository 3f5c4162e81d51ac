#include "comm/wire/chain.h"

#include <algorithm>
#include <array>

#include "comm/simd/sum_loops.h"

namespace lockstep::wire {
namespace {

constexpr int64_t kChunkBytes = 512 << 10;
// Of a carrier; more are not started ahead.
constexpr size_t kUnderWay = 8;

}  // namespace

Chain::Chain(Courier& courier, const Collective& collective)
    : courier_(courier),
      collective_(collective),
      root_host_(courier.map().host_of(collective.root)),
      place_((courier.host() - root_host_ + courier.map().hosts()) % courier.map().hosts()) {}

int64_t Chain::chunks() const { return (collective_.bytes() + kChunkBytes - 1) / kChunkBytes; }
int64_t Chain::offset(int64_t chunk) const { return std::min(collective_.bytes(), chunk * kChunkBytes); }
int Chain::carrier(int host, int64_t chunk) const {
  const HostMap& map = courier_.map();
  return map.first(host) + static_cast<int>(chunk % map.size(host));
}

void Chain::run() {
  here_ = courier_.meet(collective_, true, collective_.buffers);
  std::vector<int64_t> mine;
  for (int64_t chunk = 0; chunk < chunks(); ++chunk)
    if (carrier(courier_.host(), chunk) == courier_.rank()) mine.push_back(chunk);
  std::array<Flights, kUnderWay> receives;
  std::array<Flights, kUnderWay> sends;
  const int before = (courier_.host() + courier_.map().hosts() - 1) % courier_.map().hosts();
  const auto expect = [&](size_t i) {
    if (place_ == 0 || i >= mine.size()) return;
    receives[i % kUnderWay].push_back(
        courier_.receive(carrier(before, mine[i]), collective_.buffers[0] + offset(mine[i]), bytes(mine[i])));
  };
  for (size_t i = 0; i < kUnderWay; ++i) expect(i);
  for (size_t i = 0; i < mine.size(); ++i) {
    courier_.wait(sends[i % kUnderWay], collective_);
    carry(mine[i], receives[i % kUnderWay], sends[i % kUnderWay]);
    expect(i + kUnderWay);
  }
  for (Flights& under_way : sends) courier_.wait(under_way, collective_);
  courier_.meet(collective_, true, collective_.buffers);
}

void Chain::carry(int64_t chunk, Flights& receives, Flights& sends) {
  courier_.wait(receives, collective_);
  const auto from = place_ == 0 ? courier_.map().local_rank(collective_.root) : courier_.local_rank();
  const std::byte* const data = here_[static_cast<size_t>(from)][0] + offset(chunk);
  if (place_ + 1 < courier_.map().hosts())
    sends.push_back(
        courier_.send(carrier((courier_.host() + 1) % courier_.map().hosts(), chunk), data, bytes(chunk)));
  for (int local = 0; local < courier_.neighbours(); ++local)
    if (local != from)
      comm::sum_loops().copy(here_[static_cast<size_t>(local)][0] + offset(chunk), data, bytes(chunk));
}

}  // namespace lockstep::wire

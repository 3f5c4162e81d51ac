#include "comm/wire/rounds.h"

#include <algorithm>
#include <cstring>

namespace lockstep::wire {
namespace {

constexpr int64_t kBoardBytes = 256 << 10;
constexpr int64_t kLine = 64;

void copy_bytes(std::byte* into, const std::byte* from, int64_t bytes) {
  if (bytes > 0 && into != from) std::memcpy(into, from, static_cast<size_t>(bytes));
}

}  // namespace

Rounds::Rounds(Courier& courier, Memory& memory) : courier_(courier), memory_(memory) {
  memory_.incoming.resize(static_cast<size_t>(courier.map().hosts()));
  if (alone()) return;
  for (std::byte*& board : boards_) board = courier.local()->allocate(kBoardBytes);
}

// ---- messages ----

std::byte* Rounds::outgoing(int64_t bytes) {
  memory_.outgoing.resize(static_cast<size_t>(bytes));
  return memory_.outgoing.data();
}

const std::byte* Rounds::incoming(int host) const {
  return memory_.incoming[static_cast<size_t>(host)].data();
}

void Rounds::exchange(const Collective& collective, const std::vector<int>& to,
                      const std::vector<Expected>& from) {
  const HostMap& map = courier_.map();
  Flights flights;
  for (const Expected& one : from) {
    std::vector<std::byte>& memory = memory_.incoming[static_cast<size_t>(one.host)];
    memory.resize(static_cast<size_t>(one.bytes));
    if (one.bytes > 0) flights.push_back(courier_.receive(map.first(one.host), memory.data(), one.bytes));
  }
  if (!memory_.outgoing.empty())
    for (const int host : to)
      flights.push_back(courier_.send(map.first(host), memory_.outgoing.data(),
                                      static_cast<int64_t>(memory_.outgoing.size())));
  courier_.wait(flights, collective);
}

// ---- windows ----

template <typename Body>
void Rounds::by_window(const Collective& collective, int64_t buffers, const Body& body) {
  // Cut for the rank that lays most on its board, whoever it is.
  const int64_t most = courier_.local() == nullptr
                           ? collective.count
                           : kBoardBytes / buffers / kLine * kLine / collective.element;
  LOCKSTEP_CHECK(collective.count == 0 || most > 0, "{} buffers of {} bytes on a board", buffers,
                 collective.element);
  for (int64_t done = 0; done < collective.count; done += most) {
    board_ = boards_[++turn_ % boards_.size()];
    body(Slice{done, std::min(collective.count, done + most)});
  }
}

Slice Rounds::of_ranks(const Collective& collective, Slice window, int first, int last) const {
  const int ranks = courier_.map().ranks();
  const int64_t begin = std::clamp(slice_of(collective.count, ranks, first, collective.slice_block()).begin,
                                   window.begin, window.end);
  return {begin, std::clamp(slice_of(collective.count, ranks, last, collective.slice_block()).end, begin,
                            window.end)};
}

Slice Rounds::of_host(const Collective& collective, Slice window, int host) const {
  const HostMap& map = courier_.map();
  return of_ranks(collective, window, map.first(host), map.first(host) + map.size(host) - 1);
}

// ---- sums ----

void Rounds::reduce(const Collective& collective, const HostSums& sums, int64_t widest) {
  by_window(collective, widest, [&](Slice window) { reduce_window(collective, sums, window); });
}

void Rounds::reduce_window(const Collective& collective, const HostSums& sums, Slice window) {
  const int64_t element = collective.element;
  const int64_t bytes = window.size() * element;
  std::vector<std::byte*> shown;
  for (std::byte* buffer : collective.buffers) {
    std::byte* const from = buffer + window.begin * element;
    shown.push_back(alone() ? from : board_ + static_cast<int64_t>(shown.size()) * bytes);
    copy_bytes(shown.back(), from, bytes);
  }
  memory_.result.resize(static_cast<size_t>(alone() ? bytes : 0));
  std::byte* const place = alone() ? memory_.result.data() : board_;
  const auto here = courier_.meet(collective, false, shown);
  if (leads()) complete(collective, sums, window, here, place);
  const std::byte* const result = courier_.meet(collective, false, {place})[0][0];
  const Slice kept = collective.kind == CollectiveKind::kAllReduce
                         ? window
                         : of_ranks(collective, window, courier_.rank(), courier_.rank());
  copy_bytes(collective.buffers[0] + kept.begin * element, result + (kept.begin - window.begin) * element,
             kept.size() * element);
}

void Rounds::complete(const Collective& collective, const HostSums& sums, Slice window,
                      const std::vector<std::vector<std::byte*>>& here, std::byte* place) {
  const int64_t bytes = window.size() * collective.element;
  std::vector<const std::byte*> sources;
  for (const auto& buffers : here) sources.insert(sources.end(), buffers.begin(), buffers.end());

  const int64_t partials = sums.partials(courier_.host());
  std::vector<std::byte*> own;
  for (int64_t i = 0; i < partials; ++i) own.push_back(outgoing(partials * bytes) + i * bytes);
  sums.combine(collective.type, sources, own, window.size());
  const std::vector<int> others = courier_.other_hosts();
  std::vector<Expected> expected;
  for (const int host : others) expected.push_back({host, sums.partials(host) * bytes});
  exchange(collective, others, expected);

  std::vector<const std::byte*> all;
  for (int host = 0; host < courier_.map().hosts(); ++host) {
    if (host == courier_.host())
      all.insert(all.end(), sources.begin(), sources.end());
    else
      for (int64_t i = 0; i < sums.partials(host); ++i) all.push_back(incoming(host) + i * bytes);
  }
  sums.complete(collective.type, all, {&place, 1}, window.size());
}

// ---- copies ----

void Rounds::gather(const Collective& collective) {
  by_window(collective, 1, [&](Slice window) { gather_window(collective, window); });
}

void Rounds::gather_window(const Collective& collective, Slice window) {
  const int64_t element = collective.element;
  std::byte* const data = collective.buffers[0] + window.begin * element;
  std::byte* const place = alone() ? data : board_;
  const auto copy_part = [&](int rank, std::byte* into, const std::byte* from) {
    const Slice part = of_ranks(collective, window, rank, rank);
    const int64_t offset = (part.begin - window.begin) * element;
    copy_bytes(into + offset, from + offset, part.size() * element);
  };
  copy_part(courier_.rank(), place, data);
  const auto here = courier_.meet(collective, false, {place});
  if (leads()) {
    for (int local = 1; local < courier_.neighbours(); ++local)
      copy_part(courier_.rank() + local, place, here[static_cast<size_t>(local)][0]);
    exchange_gathered(collective, window, place);
  }
  const std::byte* const result = courier_.meet(collective, false, {place})[0][0];
  copy_bytes(data, result, window.size() * element);
}

void Rounds::exchange_gathered(const Collective& collective, Slice window, std::byte* place) {
  const auto offset = [&](int host) {
    return (of_host(collective, window, host).begin - window.begin) * collective.element;
  };
  const auto bytes = [&](int host) { return of_host(collective, window, host).size() * collective.element; };
  const int own = courier_.host();
  copy_bytes(outgoing(bytes(own)), place + offset(own), bytes(own));
  const std::vector<int> others = courier_.other_hosts();
  std::vector<Expected> expected;
  for (const int host : others) expected.push_back({host, bytes(host)});
  exchange(collective, others, expected);
  for (const int host : others) copy_bytes(place + offset(host), incoming(host), bytes(host));
}

void Rounds::broadcast(const Collective& collective) {
  by_window(collective, 1, [&](Slice window) { broadcast_window(collective, window); });
}

void Rounds::broadcast_window(const Collective& collective, Slice window) {
  const int64_t bytes = window.size() * collective.element;
  std::byte* const data = collective.buffers[0] + window.begin * collective.element;
  std::byte* const place = alone() ? data : board_;
  const int root_host = courier_.map().host_of(collective.root);
  if (courier_.host() == root_host) {
    if (courier_.rank() == collective.root) copy_bytes(place, data, bytes);
    const auto root = static_cast<size_t>(courier_.map().local_rank(collective.root));
    const std::byte* const shown = courier_.meet(collective, false, {place})[root][0];
    if (leads()) {
      copy_bytes(outgoing(bytes), shown, bytes);
      exchange(collective, courier_.other_hosts(), {});
    }
    copy_bytes(data, shown, bytes);
    return;
  }
  if (leads()) {
    exchange(collective, {}, {{root_host, bytes}});
    copy_bytes(place, incoming(root_host), bytes);
  }
  copy_bytes(data, courier_.meet(collective, false, {place})[0][0], bytes);
}

void Rounds::barrier(const Collective& collective) {
  courier_.meet(collective, false, {});
  if (leads()) {
    const std::vector<int> others = courier_.other_hosts();
    *outgoing(1) = {};
    std::vector<Expected> expected;
    for (const int host : others) expected.push_back({host, 1});
    exchange(collective, others, expected);
  }
  courier_.meet(collective, false, {});
}

}  // namespace lockstep::wire

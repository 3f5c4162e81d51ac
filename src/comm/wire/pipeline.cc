#include "comm/wire/pipeline.h"

#include "comm/simd/sum_loops.h"

namespace lockstep::wire {

Pipeline::Pipeline(Courier& courier, Memory& memory, const Collective& collective, const HostSums* sums)
    : courier_(courier),
      memory_(memory),
      collective_(collective),
      sums_(sums),
      shares_(courier.map(), collective),
      distant_(distant_ranks()) {}

std::vector<int> Pipeline::distant_ranks() const {
  const HostMap& map = courier_.map();
  std::vector<int> order;
  for (const int host : courier_.other_hosts())
    for (int i = 0; i < map.size(host); ++i)
      order.push_back(map.first(host) + (courier_.local_rank() + i) % map.size(host));
  return order;
}

void Pipeline::run() {
  // Memory that is held once lies in the segment of one of the neighbours, and nobody copies within it.
  const auto own_buffers = collective_.held_once ? std::vector<std::byte*>{} : collective_.buffers;
  here_ = courier_.meet(collective_, true, own_buffers);
  const int64_t lag = sums_ == nullptr ? 0 : kAhead;
  for (int64_t step = 0; step < shares_.chunks() + lag + kAhead; ++step) {
    Flights& sends = sends_[slot(step)];
    courier_.wait(sends, collective_);
    if (sums_ != nullptr) {
      send_partials(step);
      expect_partials(step);
    }
    if (gathers()) expect_results(step - lag);
    finish_own(step - lag, sends);
    if (gathers()) pass_on_results(step - lag - kAhead);
  }
  for (Flights& sends : sends_) courier_.wait(sends, collective_);
  // Nobody leaves while a neighbour still writes or reads.
  courier_.meet(collective_, true, own_buffers);
}

std::vector<const std::byte*> Pipeline::sources_here(Slice slice) const {
  std::vector<const std::byte*> sources;
  for (const auto& buffers : here_)
    for (const std::byte* buffer : buffers) sources.push_back(buffer + slice.begin * collective_.element);
  return sources;
}

std::vector<std::byte*> Pipeline::places_here(Slice slice) const {
  std::vector<std::byte*> places = {own(slice)};
  if (collective_.held_once) return places;
  for (int hop = 1; hop < courier_.neighbours(); ++hop) {
    const int local = (courier_.local_rank() + hop) % courier_.neighbours();
    places.push_back(here_[static_cast<size_t>(local)][0] + slice.begin * collective_.element);
  }
  return places;
}

void Pipeline::send_partials(int64_t step) {
  Flights& flights = sends_[slot(step)];
  std::vector<std::byte>& memory = memory_.outgoing[slot(step)];
  const int64_t most = sums_->partials(courier_.host()) * shares_.chunk_elements() * collective_.element;
  int64_t used = 0;
  const auto carries = [&](int owner) {
    return shares_.carrier(courier_.host(), owner, step) == courier_.rank() &&
           shares_.chunk(owner, step).size() > 0;
  };
  if (!sums_->sends_as_is()) {
    const auto count = std::count_if(distant_.begin(), distant_.end(), carries);
    memory.resize(std::max(memory.size(), static_cast<size_t>(count * most)));
  }
  for (const int owner : distant_) {
    if (!carries(owner)) continue;
    const Slice chunk = shares_.chunk(owner, step);
    if (sums_->sends_as_is()) {
      for (const std::byte* source : sources_here(chunk))
        flights.push_back(courier_.send(owner, source, bytes_of(chunk)));
      continue;
    }
    send_combined(owner, chunk, memory.data() + used, flights);
    used += most;
  }
}

void Pipeline::send_combined(int owner, Slice chunk, std::byte* into, Flights& flights) {
  std::vector<std::byte*> partials;
  for (int64_t i = 0; i < sums_->partials(courier_.host()); ++i)
    partials.push_back(into + i * bytes_of(chunk));
  sums_->combine(collective_.type, sources_here(chunk), partials, chunk.size());
  for (const std::byte* partial : partials) flights.push_back(courier_.send(owner, partial, bytes_of(chunk)));
}

void Pipeline::expect_partials(int64_t chunk) {
  const Slice mine = shares_.chunk(courier_.rank(), chunk);
  if (mine.size() == 0) return;
  const HostMap& map = courier_.map();
  int64_t total = 0;
  for (const int host : courier_.other_hosts()) total += sums_->partials(host);
  std::vector<std::byte>& memory = memory_.incoming[slot(chunk)];
  memory.resize(
      std::max(memory.size(), static_cast<size_t>(total * shares_.chunk_elements() * collective_.element)));
  int64_t next = 0;
  for (int host = 0; host < map.hosts(); ++host) {
    if (host == courier_.host()) continue;
    const int carrier = shares_.carrier(host, courier_.rank(), chunk);
    for (int64_t i = 0; i < sums_->partials(host); ++i)
      partials_[slot(chunk)].push_back(
          courier_.receive(carrier, memory.data() + bytes_of(mine) * next++, bytes_of(mine)));
  }
}

// A result lands where this rank's own partial sum was. That one has been sent: nobody can have the result
// before its owner had all partial sums.
void Pipeline::expect_results(int64_t chunk) {
  for (const int owner : distant_) {
    const Slice slice = shares_.chunk(owner, chunk);
    if (slice.size() == 0 || shares_.carrier(courier_.host(), owner, chunk) != courier_.rank()) continue;
    results_[slot(chunk)].push_back(courier_.receive(owner, own(slice), bytes_of(slice)));
  }
}

void Pipeline::finish_own(int64_t chunk, Flights& sends) {
  const Slice mine = shares_.chunk(courier_.rank(), chunk);
  if (mine.size() == 0) return;
  if (sums_ != nullptr)
    complete(mine, slot(chunk));
  else
    copy_to_neighbours(mine);
  if (!gathers()) return;
  for (const int host : courier_.other_hosts())
    sends.push_back(courier_.send(shares_.carrier(host, courier_.rank(), chunk), own(mine), bytes_of(mine)));
}

void Pipeline::complete(Slice chunk, size_t incoming) {
  courier_.wait(partials_[incoming], collective_);
  std::vector<const std::byte*> sources;
  const std::byte* next = memory_.incoming[incoming].data();
  for (int host = 0; host < courier_.map().hosts(); ++host) {
    if (host == courier_.host()) {
      const std::vector<const std::byte*> here = sources_here(chunk);
      sources.insert(sources.end(), here.begin(), here.end());
      continue;
    }
    for (int64_t i = 0; i < sums_->partials(host); ++i, next += bytes_of(chunk)) sources.push_back(next);
  }
  std::vector<std::byte*> outputs = places_here(chunk);
  if (!gathers()) outputs.resize(1);
  sums_->complete(collective_.type, sources, outputs, chunk.size());
}

void Pipeline::pass_on_results(int64_t chunk) {
  if (chunk < 0) return;
  courier_.wait(results_[slot(chunk)], collective_);
  for (const int owner : distant_)
    if (shares_.carrier(courier_.host(), owner, chunk) == courier_.rank())
      copy_to_neighbours(shares_.chunk(owner, chunk));
}

void Pipeline::copy_to_neighbours(Slice chunk) {
  const std::vector<std::byte*> places = places_here(chunk);
  for (size_t i = 1; i < places.size(); ++i) comm::sum_loops().copy(places[i], places[0], bytes_of(chunk));
}

}  // namespace lockstep::wire

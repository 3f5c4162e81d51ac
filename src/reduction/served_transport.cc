#include "reduction/served_transport.h"

#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "comm/simd/sum_loops.h"

namespace lockstep::reduction {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Below this a round of messages between hosts is as fast (comm/wire/collectives.cc).
constexpr int64_t kWorthServing = 64 << 10;
// The last chunk of each server comes back after the last was sent, so the fewer bytes it has the better; a
// thread is woken for each, so not too few.
constexpr int64_t kShortestChunk = 64 << 10;
constexpr int64_t kUsualChunk = 256 << 10;
constexpr int64_t kChunksEach = 16;  // of a server, where they do not get too short
constexpr int64_t kAlign = 1024;     // elements
constexpr int64_t kReason = 192;     // bytes of a text that says why a server was lost

double seconds_of(steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

// The chunks of a collective and what has become of those that this rank carries.
class ServedTransport::ServedSum {
 public:
  ServedSum(ServedTransport& by, const Collective& collective);
  // Until every chunk that this rank carries has its root, or its server is lost.
  void run();

  int64_t chunks() const { return static_cast<int64_t>(held_.size()); }
  Slice elements(int64_t chunk) const {
    return {chunk * chunk_, std::min(collective_.count, (chunk + 1) * chunk_)};
  }
  // Sums of few chunks take turns in beginning.
  int server(int64_t chunk) const {
    return by_.alive_[(static_cast<size_t>(chunk) + collective_.number) % by_.alive_.size()];
  }
  int carrier(int host, int64_t chunk) const {
    const wire::HostMap& map = by_.options_.map;
    const int64_t turn =
        chunk / static_cast<int64_t>(by_.alive_.size()) + static_cast<int64_t>(collective_.number);
    return map.first(host) + static_cast<int>(turn % map.size(host));
  }
  bool carries(int64_t chunk) const { return carrier(by_.courier_.host(), chunk) == by_.rank(); }
  bool holds(int64_t chunk) const { return held_[static_cast<size_t>(chunk)]; }
  int64_t missing() const;

 private:
  int next_server();
  void send_some();
  void send_next(ServerLink& link, int server);
  void take_roots(ServerLink& link);
  void pass_on(const FrameHeader& root, const std::byte* data);
  bool pending() const;
  void wait();
  std::string state(const ServerLink& link) const;
  bool is_silent(const ServerLink& link) const;
  void look_around();

  ServedTransport& by_;
  const Collective& collective_;
  std::vector<std::vector<std::byte*>> here_;     // buffers by local rank
  int64_t chunk_;                                 // elements
  std::vector<bool> held_;                        // by chunk: the root has come
  std::vector<int64_t> next_;                     // by server: the chunk to look at next
  std::vector<std::vector<std::byte>> combined_;  // by server: this host's sums on their way
  int64_t sent_ = -1;                             // bytes, when last looked at
  TimePoint last_progress_ = steady_clock::now();
  milliseconds patience_;  // with servers, from the last progress on
  milliseconds next_report_;
};

ServedTransport::ServedSum::ServedSum(ServedTransport& by, const Collective& collective)
    : by_(by),
      collective_(collective),
      patience_(by.options_.limits.deadline / 2),
      next_report_(by.options_.limits.stall) {
  here_ = by.courier_.meet(collective, true, collective.buffers);
  const auto servers = static_cast<int64_t>(by.alive_.size());
  const int64_t bytes = std::clamp(collective.bytes() / (servers * kChunksEach), kShortestChunk, kUsualChunk);
  const int64_t align = elements_in(collective.type, kAlign);
  chunk_ = std::max<int64_t>(1, bytes / collective.element / align) * align;
  held_.resize(static_cast<size_t>((collective.count + chunk_ - 1) / chunk_));
  next_.assign(by.links_.size(), 0);
  combined_.resize(by.links_.size());
}

int64_t ServedTransport::ServedSum::missing() const {
  int64_t count = 0;
  for (int64_t chunk = 0; chunk < chunks(); ++chunk) count += carries(chunk) && !holds(chunk) ? 1 : 0;
  return count;
}

// The server of the first chunk, in their order, that can be sent now; -1 if there is none.
int ServedTransport::ServedSum::next_server() {
  int first = -1;
  for (const int server : by_.alive_) {
    if (!by_.links_[static_cast<size_t>(server)]->can_send()) continue;
    int64_t& chunk = next_[static_cast<size_t>(server)];
    while (chunk < chunks() && (this->server(chunk) != server || !carries(chunk))) ++chunk;
    if (chunk < chunks() && (first < 0 || chunk < next_[static_cast<size_t>(first)])) first = server;
  }
  return first;
}

// One chunk at a time: a root comes back when the slowest host has sent its part, and connections share a
// link unevenly. With a chunk for each server on its way, the roots of a sum of 64 MiB (4 hosts of 200
// Mbit/s, 4 servers) took 0.6 s to fill the links; with two at a time 0.2, with one 0.1.
void ServedTransport::ServedSum::send_some() {
  const auto is_sending = [&](int server) { return by_.links_[static_cast<size_t>(server)]->sending(); };
  while (std::none_of(by_.alive_.begin(), by_.alive_.end(), is_sending)) {
    const int server = next_server();
    if (server < 0) return;
    send_next(*by_.links_[static_cast<size_t>(server)], server);
  }
}

void ServedTransport::ServedSum::send_next(ServerLink& link, int server) {
  int64_t& chunk = next_[static_cast<size_t>(server)];
  const Slice slice = elements(chunk);
  const int64_t bytes = slice.size() * collective_.element;
  const int64_t offset = slice.begin * collective_.element;
  const int64_t partials = by_.sums_.partials(by_.courier_.host());
  std::vector<std::span<const std::byte>> pieces;
  if (by_.sums_.sends_as_is()) {
    for (const std::byte* buffer : collective_.buffers) pieces.emplace_back(buffer + offset, bytes);
  } else {
    std::vector<std::byte>& memory = combined_[static_cast<size_t>(server)];
    memory.resize(static_cast<size_t>(partials * chunk_ * collective_.element));
    std::vector<const std::byte*> sources;
    for (const auto& buffers : here_)
      for (const std::byte* buffer : buffers) sources.push_back(buffer + offset);
    std::vector<std::byte*> sums;
    for (int64_t i = 0; i < partials; ++i) sums.push_back(memory.data() + i * bytes);
    by_.sums_.combine(collective_.type, sources, sums, slice.size());
    pieces.emplace_back(memory.data(), partials * bytes);
  }
  link.send({.kind = FrameKind::kPartials,
             .type = collective_.type,
             .partials = static_cast<uint16_t>(partials),
             .chunk = static_cast<uint32_t>(chunk),
             .collective = collective_.number,
             .elements = static_cast<uint32_t>(slice.size()),
             .payload = static_cast<uint32_t>(partials * bytes)},
            pieces);
  ++chunk;
}

void ServedTransport::ServedSum::pass_on(const FrameHeader& root, const std::byte* data) {
  const Slice slice = elements(root.chunk);
  for (const auto& buffers : here_)
    comm::sum_loops().copy(buffers[0] + slice.begin * collective_.element, data,
                           slice.size() * collective_.element);
  held_[root.chunk] = true;
  last_progress_ = steady_clock::now();
}

void ServedTransport::ServedSum::take_roots(ServerLink& link) {
  while (const auto root = link.read_some()) pass_on(*root, link.root());
}

bool ServedTransport::ServedSum::pending() const {
  return std::any_of(by_.alive_.begin(), by_.alive_.end(), [&](int server) {
    const ServerLink& link = *by_.links_[static_cast<size_t>(server)];
    return link.alive() && (link.sending() || !link.unanswered().empty());
  });
}

void ServedTransport::ServedSum::run() {
  while (true) {
    for (const int server : by_.alive_) {
      ServerLink& link = *by_.links_[static_cast<size_t>(server)];
      if (!link.alive()) continue;
      link.write_some();
      take_roots(link);
    }
    send_some();
    if (!pending()) return;
    wait();
    if (by_.failed_) throw CommError("{}: this rank has given up", text_of(collective_));
    look_around();
  }
}

void ServedTransport::ServedSum::wait() {
  std::vector<pollfd> entries;
  for (const int server : by_.alive_) {
    const ServerLink& link = *by_.links_[static_cast<size_t>(server)];
    if (!link.alive()) continue;
    entries.push_back({link.socket().get(), static_cast<short>(POLLIN | (link.sending() ? POLLOUT : 0)), 0});
  }
  constexpr int kGlance = 100;  // ms
  if (poll(entries.data(), entries.size(), kGlance) < 0 && errno != EINTR)
    throw DeviceError("poll: {}", std::strerror(errno));
}

// How a server that keeps this rank waiting behaves. What it said before it fell silent says nothing of why.
std::string ServedTransport::ServedSum::state(const ServerLink& link) const {
  if (!is_silent(link)) return fmt::format("it says that {}", link.waits_for());
  return fmt::format("it has said nothing for {:.1f} s", seconds_of(steady_clock::now() - link.last_word()));
}

// One that lives says again and again for whom it waits.
bool ServedTransport::ServedSum::is_silent(const ServerLink& link) const {
  const auto now = steady_clock::now();
  return link.waits_for().empty() || now - link.last_word() > (now - last_progress_) / 2;
}

// A server may take half of the deadline. The other half is for completing the sum without it. Of several the
// silent ones are given up first: the others may be waiting for a host that waits for these.
void ServedTransport::ServedSum::look_around() {
  int64_t sent = 0;
  for (const auto& link : by_.links_) sent += link->bytes_sent();
  if (sent != std::exchange(sent_, sent)) last_progress_ = steady_clock::now();
  const auto waited = steady_clock::now() - last_progress_;
  if (waited < by_.options_.limits.stall && waited < patience_) return;
  std::vector<ServerLink*> late;
  for (const int server : by_.alive_) {
    ServerLink& link = *by_.links_[static_cast<size_t>(server)];
    if (link.alive() && (!link.unanswered().empty() || link.sending())) late.push_back(&link);
  }
  if (waited >= patience_) {
    const bool some_silent =
        std::any_of(late.begin(), late.end(), [&](const ServerLink* link) { return is_silent(*link); });
    for (ServerLink* link : late)
      if (!some_silent || is_silent(*link))
        link->lose(fmt::format("rank {} waited {:.1f} s for it in {}; {}", by_.number(by_.rank()),
                               seconds_of(waited), text_of(collective_), state(*link)));
    last_progress_ = steady_clock::now();
    patience_ = by_.options_.limits.deadline / 8;
  } else if (waited >= next_report_) {
    for (const ServerLink* link : late)
      log_warn("rank {} has waited {:.1f} s in {} for {}: {}; doing without it after {:.1f} s",
               by_.number(by_.rank()), seconds_of(waited), text_of(collective_), link->name(), state(*link),
               seconds_of(patience_));
    next_report_ *= 2;
  }
}

// ---- the transport ----

ServedTransport::ServedTransport(std::unique_ptr<Transport> under,
                                 std::vector<std::unique_ptr<ServerLink>> links, const ServedOptions& options)
    : under_(std::move(under)),
      options_(options),
      links_(std::move(links)),
      courier_(options_.map, under_->collective_messages(), options_.local),
      sums_(options_.split, options_.map, courier_.host()),
      over_ranks_(LeafSplit::one_each(under_->size())),
      name_(fmt::format("{} + {} reduction server{}", under_->name(), links_.size(),
                        links_.size() == 1 ? "" : "s")) {
  for (size_t i = 0; i < links_.size(); ++i) alive_.push_back(static_cast<int>(i));
  figures_.servers = static_cast<int64_t>(links_.size());
  figures_.hosts = options_.map.hosts();
}

ServedTransport::~ServedTransport() = default;

const ServedFigures* ServedTransport::served() const {
  figures_.alive = static_cast<int64_t>(alive_.size());
  figures_.bytes_sent = figures_.bytes_received = 0;
  for (const auto& link : links_) {
    figures_.bytes_sent += link->bytes_sent();
    figures_.bytes_received += link->bytes_received();
  }
  return &figures_;
}

int64_t ServedTransport::network_bytes() const { return under_->network_bytes() + served()->bytes_sent; }

void ServedTransport::fail(int culprit, std::string_view verdict) noexcept {
  failed_ = true;
  under_->fail(culprit, verdict);
}

bool ServedTransport::goes_to_servers(const Collective& collective) const {
  return collective.kind == CollectiveKind::kAllReduce && collective.order == SumOrder::kCanonical &&
         collective.bytes() > kWorthServing && !alive_.empty() && courier_.is_direct(collective);
}

void ServedTransport::run(const Collective& collective, const SumProgram& program) {
  if (!goes_to_servers(collective)) return under_->run(collective, program);
  const auto start = steady_clock::now();
  // Neighbours read this ledger, as in comm/wire/hosts_transport.cc.
  if (options_.local != nullptr) options_.local->ledger().begin(collective, LedgerState::kWaiting);
  reduce(collective, program);
  ++figures_.sums;
  figures_.seconds += seconds_of(steady_clock::now() - start);
}

void ServedTransport::reduce(const Collective& collective, const SumProgram& program) {
  LOCKSTEP_CHECK(program.split() && program.split()->text() == options_.split.text(),
                 "servers for another split");
  ServedSum sum(*this, collective);
  sum.run();
  int64_t missing = sum.missing();
  Collective word;
  word.kind = CollectiveKind::kAllReduce;
  word.type = SumType::kI64;
  word.order = SumOrder::kFast;
  word.count = 1;
  word.element = size_of(word.type);
  word.buffers = {reinterpret_cast<std::byte*>(&missing)};
  word.label = collective.label;
  word.number = collective.number;
  under_->run(word, over_ranks_);
  if (missing > 0) complete(collective, program, sum);
}

// All ranks tell which roots they have, which servers they have lost and why; the rest is the same on all.
void ServedTransport::complete(const Collective& collective, const SumProgram& program, ServedSum& sum) {
  const auto servers = static_cast<int64_t>(links_.size());
  const int64_t bits = servers + sum.chunks();
  const int64_t told = bits + servers * kReason;
  const int64_t row = (told + kSliceBlock - 1) / kSliceBlock * kSliceBlock;
  std::vector<std::byte> table(static_cast<size_t>(row * size()));
  const auto at = [&](int rank, int64_t bit) -> std::byte& {
    return table[static_cast<size_t>(rank * row + bit)];
  };
  for (int64_t server = 0; server < servers; ++server) {
    const ServerLink& link = *links_[static_cast<size_t>(server)];
    at(rank(), server) = std::byte{!link.alive()};
    const auto length = std::min<size_t>(link.reason().size(), kReason);
    std::memcpy(&at(rank(), bits + server * kReason), link.reason().data(), length);
  }
  for (int64_t chunk = 0; chunk < sum.chunks(); ++chunk)
    at(rank(), servers + chunk) = std::byte{sum.carries(chunk) && sum.holds(chunk)};

  Collective gather;
  gather.kind = CollectiveKind::kAllGather;
  gather.count = kSliceBlock * size();
  gather.element = row / kSliceBlock;
  gather.buffers = {table.data()};
  gather.label = collective.label;
  gather.number = collective.number;
  under_->run(gather, program);

  int64_t completed = 0;
  for (int64_t chunk = 0; chunk < sum.chunks(); ++chunk) {
    int holders = 0, first = -1;
    for (int rank = 0; rank < size(); ++rank)
      if (at(rank, servers + chunk) != std::byte{0}) {
        ++holders;
        if (first < 0) first = rank;
      }
    if (holders == options_.map.hosts()) continue;
    ++completed;
    const Slice slice = sum.elements(chunk);
    Collective part = collective;
    part.before = part.after = {};
    for (std::byte*& buffer : part.buffers) buffer += slice.begin * collective.element;
    part.count = slice.size();
    if (first >= 0) {
      part.kind = CollectiveKind::kBroadcast;
      part.type = SumType::kF32;
      part.count = slice.size() * collective.element;
      part.element = 1;
      part.root = first;
      part.buffers.resize(1);
    }
    under_->run(part, program);
  }

  std::vector<std::string> lost(links_.size());
  for (int64_t server = 0; server < servers; ++server)
    for (int rank = size() - 1; rank >= 0; --rank) {
      if (at(rank, server) == std::byte{0}) continue;
      const auto* reason = reinterpret_cast<const char*>(&at(rank, bits + server * kReason));
      lost[static_cast<size_t>(server)] = printable(std::string(reason, strnlen(reason, kReason)));
    }
  note_lost(collective, lost, completed);
}

// By server: why the first rank that lost it did, empty if none has.
void ServedTransport::note_lost(const Collective& collective, const std::vector<std::string>& lost,
                                int64_t chunks) {
  ++figures_.fallbacks;
  std::vector<std::string> now;
  for (const int server : alive_) {
    const std::string& reason = lost[static_cast<size_t>(server)];
    if (reason.empty()) continue;
    ServerLink& link = *links_[static_cast<size_t>(server)];
    link.lose(reason);
    now.push_back(fmt::format("{}: {}", link.name(), reason));
  }
  std::erase_if(alive_, [&](int server) { return !lost[static_cast<size_t>(server)].empty(); });
  figures_.lost.insert(figures_.lost.end(), now.begin(), now.end());
  if (rank() != 0) return;
  log_warn(
      "lost {}; {} chunks of {} were completed between the workers, with the same bits, and the run goes on "
      "{}",
      fmt::join(now, "; "), chunks, text_of(collective),
      alive_.empty() ? std::string("without servers")
                     : fmt::format("with {} of {} servers", alive_.size(), links_.size()));
}

}  // namespace lockstep::reduction

#include "comm/group.h"

#include <utility>

#include "base/does_not_fit.h"
#include "base/number_text.h"
#include "comm/runner.h"

namespace lockstep {
namespace {

std::byte* bytes_at(void* memory) { return static_cast<std::byte*>(memory); }

Collective sum_of(CollectiveKind kind, const Reduction& reduction, const Group& group) {
  const bool canonical = reduction.order == SumOrder::kCanonical;
  const size_t expected = canonical ? group.split().partials(group.rank()).size() : 1;
  LOCKSTEP_CHECK(reduction.partials.size() == expected, "{} partial sums instead of {} ({})",
                 reduction.partials.size(), expected, group.split().text());
  Collective collective;
  collective.kind = kind;
  collective.type = reduction.type;
  collective.order = reduction.order;
  collective.count = reduction.count;
  collective.element = size_of(reduction.type);
  for (void* partial : reduction.partials) collective.buffers.push_back(bytes_at(partial));
  collective.label = reduction.label;
  collective.before = reduction.before;
  collective.after = reduction.after;
  return collective;
}

Collective gather_of(const Gather& gather) {
  Collective collective;
  collective.kind = CollectiveKind::kAllGather;
  collective.count = gather.count;
  collective.element = gather.element_bytes;
  collective.buffers = {bytes_at(gather.data)};
  collective.label = gather.label;
  collective.held_once = gather.held_once;
  collective.before = gather.before;
  collective.after = gather.after;
  return collective;
}

Collective broadcast_of(std::span<std::byte> data, int root, const std::string& label, const Group& group) {
  LOCKSTEP_CHECK(root >= 0 && root < group.size(), "root {} of {} ranks", root, group.size());
  Collective collective;
  collective.kind = CollectiveKind::kBroadcast;
  collective.count = static_cast<int64_t>(data.size());
  collective.root = root;
  collective.buffers = {data.data()};
  collective.label = label;
  return collective;
}

Collective exchange_of(std::span<const std::byte> send, std::span<std::byte> receive,
                       const std::string& label, const Group& group) {
  LOCKSTEP_CHECK(send.size() == receive.size() && send.size() % static_cast<size_t>(group.size()) == 0,
                 "{} bytes to send, {} to receive, {} ranks", send.size(), receive.size(), group.size());
  Collective collective;
  collective.kind = CollectiveKind::kAllToAll;
  collective.count = static_cast<int64_t>(send.size()) / group.size();
  collective.buffers = {const_cast<std::byte*>(send.data())};
  collective.result = receive.data();
  collective.label = label;
  return collective;
}

Collective barrier_of(CollectiveKind kind, const Meeting& meeting) {
  Collective collective;
  collective.kind = kind;
  collective.label = meeting.label;
  collective.before = meeting.before;
  collective.after = meeting.after;
  return collective;
}

}  // namespace

// ---- shared buffers ----

SharedBuffer::SharedBuffer(std::shared_ptr<Transport> transport, int64_t bytes)
    : transport_(std::move(transport)), data_(transport_->allocate(bytes)), bytes_(bytes) {}

SharedBuffer::SharedBuffer(SharedBuffer&& other) noexcept
    : transport_(std::move(other.transport_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

SharedBuffer& SharedBuffer::operator=(SharedBuffer&& other) noexcept {
  std::swap(transport_, other.transport_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedBuffer::~SharedBuffer() {
  if (data_ != nullptr) transport_->release(data_);
}

// ---- the group ----

Group::Group(std::unique_ptr<Transport> transport, const LeafSplit& split, std::string name)
    : runner_(std::make_unique<Runner>(std::move(transport), split, std::move(name))) {}
Group::~Group() = default;

int Group::rank() const { return runner_->transport()->rank(); }
int Group::size() const { return runner_->transport()->size(); }
const LeafSplit& Group::split() const { return runner_->split(); }
SharedBuffer Group::allocate(int64_t bytes) { return {runner_->transport(), bytes}; }
std::optional<HostPlace> Group::host() const { return runner_->transport()->host(); }
int64_t Group::network_bytes() const { return runner_->transport()->network_bytes(); }
const ServedFigures* Group::served() const { return runner_->transport()->served(); }
std::string Group::last_did(int rank) const { return runner_->transport()->last_did(rank); }

// The first rank of each host takes the memory and tells the others its name, or that there is none: all
// fail alike then. Nobody gives it back, since a rank may still read when the first has no more use for it.
HostBuffer Group::allocate_for_host(int64_t bytes, const std::string& label) {
  constexpr int64_t kNone = -1;
  const std::shared_ptr<Transport>& transport = runner_->transport();
  const HostPlace place = host().value_or(HostPlace{});
  int64_t own = kNone;
  std::exception_ptr error;
  try {
    if (place.index == 0) own = transport->name_of_memory(transport->allocate(bytes));
  } catch (const DoesNotFit&) {
    error = std::current_exception();
  }
  const std::vector<int64_t> told(static_cast<size_t>(size()), own);
  std::vector<int64_t> names(told.size());
  all_to_all(std::as_bytes(std::span(told)), std::as_writable_bytes(std::span(names)), label);
  if (error) std::rethrow_exception(error);
  const int first = rank() - place.index;
  const int64_t name = names[static_cast<size_t>(first)];
  if (name == kNone)
    throw DoesNotFit("rank {} had no room for {} of memory that the ranks of this host share",
                     transport->number(first), bytes_text(bytes));
  return {transport, transport->memory_of(0, name), bytes};
}

void Group::all_reduce(const Reduction& reduction) {
  runner_->run(sum_of(CollectiveKind::kAllReduce, reduction, *this));
}
void Group::reduce_scatter(const Reduction& reduction) {
  runner_->run(sum_of(CollectiveKind::kReduceScatter, reduction, *this));
}
void Group::all_gather(const Gather& gather) { runner_->run(gather_of(gather)); }
void Group::broadcast(std::span<std::byte> data, int root, const std::string& label) {
  runner_->run(broadcast_of(data, root, label, *this));
}
void Group::all_to_all(std::span<const std::byte> send, std::span<std::byte> receive,
                       const std::string& label) {
  runner_->run(exchange_of(send, receive, label, *this));
}
void Group::barrier(const std::string& label) { meet({.label = label}); }
void Group::meet(const Meeting& meeting) { runner_->run(barrier_of(CollectiveKind::kBarrier, meeting)); }
void Group::host_barrier(const std::string& label) {
  runner_->run(barrier_of(CollectiveKind::kHostBarrier, {.label = label}));
}
void Group::send(int peer, std::span<const std::byte> data) { wait(start_send(peer, data)); }
void Group::receive(int peer, std::span<std::byte> data) { wait(start_receive(peer, data)); }

Group::Ticket Group::start_all_reduce(const Reduction& reduction) {
  return runner_->start(sum_of(CollectiveKind::kAllReduce, reduction, *this));
}
Group::Ticket Group::start_reduce_scatter(const Reduction& reduction) {
  return runner_->start(sum_of(CollectiveKind::kReduceScatter, reduction, *this));
}
Group::Ticket Group::start_all_gather(const Gather& gather) { return runner_->start(gather_of(gather)); }
Group::Ticket Group::start_broadcast(std::span<std::byte> data, int root, const std::string& label) {
  return runner_->start(broadcast_of(data, root, label, *this));
}
Group::Ticket Group::start_all_to_all(std::span<const std::byte> send, std::span<std::byte> receive,
                                      const std::string& label) {
  return runner_->start(exchange_of(send, receive, label, *this));
}
Group::Ticket Group::start_exchange(const PieceExchange& exchange) {
  Collective collective = exchange_of(exchange.send, exchange.receive, exchange.label, *this);
  collective.before = exchange.before;
  collective.after = exchange.after;
  return runner_->start(std::move(collective));
}
Group::Ticket Group::start_meeting(const Meeting& meeting) {
  return runner_->start(barrier_of(CollectiveKind::kBarrier, meeting));
}
Group::Ticket Group::start_send(int peer, std::span<const std::byte> data) {
  return runner_->start_send(peer, data);
}
Group::Ticket Group::start_receive(int peer, std::span<std::byte> data) {
  return runner_->start_receive(peer, data);
}
bool Group::is_done(const Ticket& ticket) const { return runner_->is_done(ticket); }
void Group::wait(const Ticket& ticket) { runner_->wait(ticket); }
void Group::move_messages() { runner_->move_messages(); }
void Group::while_waiting(std::function<void()> moves) { runner_->while_waiting(std::move(moves)); }

}  // namespace lockstep

#include "comm/runner.h"

#include <utility>

#include "base/error.h"
#include "comm/peer_error.h"

namespace lockstep {
namespace {

constexpr std::chrono::microseconds kMoveTime{200};

}  // namespace

Group::Runner::Runner(std::unique_ptr<Transport> transport, const LeafSplit& split, std::string name)
    : transport_(std::move(transport)),
      split_(split),
      name_(std::move(name)),
      canonical_(split),
      fast_(LeafSplit::one_each(transport_->size())) {
  LOCKSTEP_CHECK(split.ranks() == transport_->size(), "{} for a group of {}", split.text(),
                 transport_->size());
}

Group::Runner::~Runner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (!queue_.empty())
      transport_->fail(own_number(),
                       fmt::format("rank {} left with {} operations under way, first {}", own_number(),
                                   queue_.size(), text_of(queue_.front()->collective)));
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Group::Runner::run(Collective collective) {
  bool idle = false;
  {
    const std::lock_guard lock(mutex_);
    idle = queue_.empty();
  }
  if (!idle) return wait(start(std::move(collective)));
  throw_if_broken();
  collective = numbered(std::move(collective));
  guarded([&] { perform(collective); });
}

Group::Ticket Group::Runner::start(Collective collective) {
  throw_if_broken();
  auto operation = std::make_shared<Operation>();
  operation->collective = numbered(std::move(collective));
  transport_->ledger().begin(operation->collective, LedgerState::kQueued);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(operation);
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  wake_.notify_one();
  return operation;
}

Group::Ticket Group::Runner::start_send(int peer, std::span<const std::byte> data) {
  throw_if_broken();
  auto operation = std::make_shared<Operation>();
  guarded([&] { operation->message = transport_->start_send(peer, data); });
  return operation;
}

Group::Ticket Group::Runner::start_receive(int peer, std::span<std::byte> data) {
  throw_if_broken();
  auto operation = std::make_shared<Operation>();
  guarded([&] { operation->message = transport_->start_receive(peer, data); });
  return operation;
}

bool Group::Runner::is_done(const Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  return ticket->done;
}

void Group::Runner::wait(const Ticket& ticket) {
  if (ticket->message) {
    if (ticket->done) return;
    throw_if_broken();
    guarded([&] { transport_->wait(*ticket->message); });
    ticket->done = true;
    return;
  }
  // Whoever runs the operation is bound by the deadline, and so is this.
  std::unique_lock lock(mutex_);
  const auto is_done = [&] { return ticket->done; };
  while (moves_ && !finished_.wait_for(lock, kMoveTime, is_done)) {
    lock.unlock();
    moves_();
    lock.lock();
  }
  finished_.wait(lock, is_done);
  if (ticket->error) std::rethrow_exception(ticket->error);
}

void Group::Runner::move_messages() {
  throw_if_broken();
  guarded([&] { transport_->move(); });
}

// Messages belong to the thread that uses the groups, so the group's own thread keeps away from them.
void Group::Runner::while_waiting(std::function<void()> moves) {
  moves_ = std::move(moves);
  transport_->while_waiting([this] {
    if (std::this_thread::get_id() != serving_.load(std::memory_order_relaxed)) moves_();
  });
}

Collective Group::Runner::numbered(Collective collective) {
  collective.number = ++number_;
  if (!name_.empty())
    collective.label = collective.label.empty() ? name_ : fmt::format("{}: {}", name_, collective.label);
  return collective;
}

void Group::Runner::perform(const Collective& collective) {
  Ledger& ledger = transport_->ledger();
  if (collective.before) collective.before();
  ledger.begin(collective, LedgerState::kWaiting);
  try {
    transport_->run(collective, collective.order == SumOrder::kFast ? fast_ : canonical_);
  } catch (...) {
    ledger.set_state(collective.number, LedgerState::kFailed);
    throw;
  }
  if (collective.after) collective.after();
  ledger.set_state(collective.number, LedgerState::kDone);
}

template <typename Body>
void Group::Runner::guarded(const Body& body) {
  try {
    body();
  } catch (const PeerError& error) {
    remember(std::current_exception(), error.peer(), error.what());
    throw;
  } catch (const std::exception& error) {
    remember(std::current_exception(), own_number(), error.what());
    throw;
  }
}

void Group::Runner::remember(std::exception_ptr error, int culprit, const char* verdict) {
  transport_->fail(culprit, verdict);
  const std::lock_guard lock(mutex_);
  if (!broken_) broken_ = std::move(error);
}

void Group::Runner::throw_if_broken() {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
}

void Group::Runner::serve() {
  serving_ = std::this_thread::get_id();
  while (true) {
    Ticket next;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      next = queue_.front();
    }
    std::exception_ptr error;
    try {
      throw_if_broken();
      guarded([&] { perform(next->collective); });
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      queue_.pop_front();
      next->error = error;
      next->done = true;
    }
    finished_.notify_all();
  }
}

}  // namespace lockstep

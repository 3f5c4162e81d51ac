#include "comm/shm/messages.h"

#include <algorithm>
#include <cstring>

namespace lockstep::shm {

Messages::Messages(const Members& members, const Watch& watch)
    : members_(members),
      watch_(watch),
      sends_(static_cast<size_t>(members.size())),
      receives_(static_cast<size_t>(members.size())),
      started_(2 * static_cast<size_t>(members.size()), 0) {}

std::unique_ptr<Message> Messages::start_send(int peer, std::span<const std::byte> data) {
  return start(CollectiveKind::kSend, peer, const_cast<std::byte*>(data.data()),
               static_cast<int64_t>(data.size()));
}

std::unique_ptr<Message> Messages::start_receive(int peer, std::span<std::byte> data) {
  return start(CollectiveKind::kReceive, peer, data.data(), static_cast<int64_t>(data.size()));
}

std::unique_ptr<Message> Messages::start(CollectiveKind kind, int peer, std::byte* data, int64_t bytes) {
  LOCKSTEP_CHECK(peer >= 0 && peer < members_.size() && peer != members_.rank, "peer {} of {} ranks", peer,
                 members_.size());
  LOCKSTEP_CHECK(bytes > 0, "a message of {} bytes to or from rank {}", bytes, peer);
  const bool sends = kind == CollectiveKind::kSend;
  const auto index = static_cast<size_t>(peer);
  auto handle = std::make_unique<Handle>();
  handle->state =
      std::make_shared<State>(State{kind, peer, data, bytes, ++started_[2 * index + (sends ? 0 : 1)]});
  (sends ? sends_ : receives_)[index].push_back(handle->state);
  advance();
  return handle;
}

Collective Messages::describe(const State& state) const {
  Collective message;
  message.kind = state.kind;
  message.count = state.bytes;
  message.number = state.number;
  message.label = fmt::format("{} rank {}", state.kind == CollectiveKind::kSend ? "to" : "from",
                              members_.number(state.peer));
  return message;
}

void Messages::wait(Message& message) {
  const State& state = *static_cast<Handle&>(message).state;
  advance();
  if (state.done()) return;
  Ledger& ledger = members_.own().header().messages;
  const Collective description = describe(state);
  ledger.begin(description, LedgerState::kWaiting);
  ledger.waits_for(description.number, members_.number(state.peer));
  const auto ready = [&] {
    advance();
    return state.done();
  };
  watch_.until(ready, state.peer, [&] { return text_of(description); });
  ledger.set_state(description.number, LedgerState::kDone);
}

void Messages::advance() {
  for (std::vector<Queue>* queues : {&sends_, &receives_})
    for (Queue& queue : *queues)
      while (!queue.empty()) {
        State& head = *queue.front();
        if (head.kind == CollectiveKind::kSend)
          advance_send(head);
        else
          advance_receive(head);
        if (!head.done()) break;
        queue.pop_front();
      }
}

void Messages::advance_send(State& state) {
  Segment& own = members_.own();
  Channel& channel = own.header().channels[state.peer];
  while (channel.taken.load(std::memory_order_acquire) == channel.posted.load(std::memory_order_relaxed)) {
    state.shown = false;
    if (state.moved == state.bytes) return;
    const int64_t left = state.bytes - state.moved;
    const std::byte* data = state.data + state.moved;
    channel.total = state.bytes;
    if (own.holds(data, left)) {
      channel.offset = own.offset_of(data);
      channel.bytes = left;
    } else {
      channel.offset = own.message_offset(state.peer);
      channel.bytes = std::min(left, kMessageBytes);
      std::memcpy(own.at(channel.offset), data, static_cast<size_t>(channel.bytes));
    }
    state.moved += channel.bytes;
    state.shown = true;
    channel.posted.fetch_add(1);
    watch_.ring(state.peer);
  }
}

void Messages::advance_receive(State& state) {
  const Segment& theirs = members_.of(state.peer);
  Channel& channel = theirs.header().channels[members_.rank];
  while (state.moved < state.bytes) {
    const uint32_t posted = channel.posted.load(std::memory_order_acquire);
    if (channel.taken.load(std::memory_order_relaxed) == posted) return;
    if (channel.total != state.bytes)
      throw PeerError(
          text_of(describe(state)), members_.number(state.peer),
          fmt::format("rank {} sends {} bytes and rank {} expects {}", members_.number(state.peer),
                      channel.total, members_.number(members_.rank), state.bytes),
          "both must name the same size");
    std::memcpy(state.data + state.moved, theirs.at(channel.offset), static_cast<size_t>(channel.bytes));
    state.moved += channel.bytes;
    channel.taken.store(posted);
    watch_.ring(state.peer);
  }
}

}  // namespace lockstep::shm

#include "comm/ucx/messages.h"

#include "base/error.h"
#include "base/log.h"

namespace lockstep::ucx {
namespace {

constexpr int kRankBits = 16;
constexpr int kNumberBits = 46;
// What is under way on a connection ends with it; this only bounds the loop.
constexpr int64_t kEndingNs = 2'000'000'000;
constexpr ucp_tag_t kWholeTag = ~ucp_tag_t{0};

ucp_tag_t tag_of(Lane lane, int sender, uint64_t number) {
  return static_cast<ucp_tag_t>(lane) << (kRankBits + kNumberBits) |
         static_cast<ucp_tag_t>(sender) << kNumberBits | (number & ((uint64_t{1} << kNumberBits) - 1));
}

}  // namespace

struct Messages::Handle : Message {
  explicit Handle(Messages& owner) : messages(&owner) { owner.held_.insert(this); }
  ~Handle() override {
    if (messages != nullptr) messages->let_go(*this);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Messages* messages;  // none once they are gone
  State state;
};

Messages::Messages(Worker& worker, Peers& peers, Watch& watch)
    : worker_(worker), peers_(peers), watch_(watch), started_(4 * static_cast<size_t>(peers.size()), 0) {}

Messages::~Messages() {
  const auto lock = worker_.lock();
  for (Handle* handle : held_) {
    cancel_receive(handle->state);
    handle->messages = nullptr;
  }
}

std::unique_ptr<Messages::Handle> Messages::prepare(Lane lane, CollectiveKind kind, int peer, size_t bytes) {
  LOCKSTEP_CHECK(peer >= 0 && peer < peers_.size() && peer != peers_.rank(), "peer {} of {} ranks", peer,
                 peers_.size());
  auto handle = std::make_unique<Handle>(*this);
  State& state = handle->state;
  state.kind = kind;
  state.lane = lane;
  state.peer = peer;
  state.bytes = static_cast<int64_t>(bytes);
  const size_t way = 2 * static_cast<size_t>(lane) + (kind == CollectiveKind::kSend ? 0 : 1);
  state.number = ++started_[4 * static_cast<size_t>(peer) + way];
  state.done = true;  // nothing to give up yet
  return handle;
}

std::unique_ptr<Message> Messages::start_send(Lane lane, int peer, std::span<const std::byte> data) {
  const auto lock = worker_.lock();
  auto handle = prepare(lane, CollectiveKind::kSend, peer, data.size());
  State& state = handle->state;
  if (peers_.of(peer).gone) {
    state.status = UCS_ERR_ENDPOINT_TIMEOUT;
    return handle;
  }
  state.done = false;
  sent_bytes_ += state.bytes;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.cb.send = sent;
  parameters.user_data = &state;
  void* const request = library().tag_send_nbx(peers_.of(peer).endpoint, data.data(), data.size(),
                                               tag_of(lane, peers_.rank(), state.number), &parameters);
  began(state, request);
  worker_.wake();
  return handle;
}

std::unique_ptr<Message> Messages::start_receive(Lane lane, int peer, std::span<std::byte> data) {
  const auto lock = worker_.lock();
  auto handle = prepare(lane, CollectiveKind::kReceive, peer, data.size());
  State& state = handle->state;
  state.done = false;
  ucp_request_param_t parameters{};
  // Only the callback says how long the message was.
  parameters.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  parameters.cb.recv = received;
  parameters.user_data = &state;
  void* const request = library().tag_recv_nbx(worker_.handle(), data.data(), data.size(),
                                               tag_of(lane, peer, state.number), kWholeTag, &parameters);
  began(state, request);
  worker_.wake();
  return handle;
}

void Messages::began(State& state, void* request) {
  if (state.done) return;  // its callback has come already
  if (request != nullptr && !UCS_PTR_IS_ERR(request)) {
    state.request = request;
    return;
  }
  state.done = true;
  state.status = UCS_PTR_STATUS(request);
  state.arrived = state.bytes;
}

void Messages::sent(void* request, ucs_status_t status, void* state) {
  auto& message = *static_cast<State*>(state);
  message.done = true;
  message.status = status;
  message.arrived = message.bytes;
  library().request_free(request);
}

void Messages::received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* state) {
  auto& message = *static_cast<State*>(state);
  message.done = true;
  message.status = status;
  message.arrived = info == nullptr ? 0 : static_cast<int64_t>(info->length);
  library().request_free(request);
}

Collective Messages::describe(const State& state) const {
  Collective message;
  message.kind = state.kind;
  message.count = state.bytes;
  message.number = state.number;
  message.label = fmt::format("{} rank {}", state.kind == CollectiveKind::kSend ? "to" : "from",
                              peers_.number(state.peer));
  return message;
}

void Messages::wait(Message& message) {
  const State& state = static_cast<Handle&>(message).state;
  auto lock = worker_.lock();
  const Collective* collective = state.lane == Lane::kCollective ? watch_.current() : nullptr;
  const bool compares = collective != nullptr && state.kind == CollectiveKind::kReceive;
  const auto ready = [&] { return state.done && (!compares || watch_.agrees(state.peer)); };
  if (!ready()) {
    const Collective description = describe(state);
    Ledger& ledger = collective != nullptr ? watch_.collectives() : watch_.messages();
    const uint64_t number = collective != nullptr ? collective->number : state.number;
    if (collective == nullptr) ledger.begin(description, LedgerState::kWaiting);
    ledger.waits_for(number, peers_.number(state.peer));
    watch_.until(lock, ready, state.peer,
                 [&] { return text_of(collective != nullptr ? *collective : description); });
    ledger.waits_for(number, -1);
    if (collective == nullptr) ledger.set_state(number, LedgerState::kDone);
  }
  require_success(state);
}

void Messages::require_success(const State& state) {
  if (state.status == UCS_OK && state.arrived == state.bytes) return;
  const auto operation = [&] { return text_of(describe(state)); };
  if (state.status == UCS_OK || state.status == UCS_ERR_MESSAGE_TRUNCATED)
    watch_.fail_with(
        PeerError(operation(), peers_.number(state.peer),
                  fmt::format("rank {} sends {} bytes and rank {} expects {}", peers_.number(state.peer),
                              state.arrived, peers_.own_number(), state.bytes),
                  "both must name the same size"));
  watch_.lost(state.peer, state.status, operation);
}

void Messages::cancel_receive(State& state) {
  if (!state.done && state.kind == CollectiveKind::kReceive)
    library().request_cancel(worker_.handle(), state.request);
}

void Messages::let_go(Handle& handle) noexcept {
  auto lock = worker_.lock();
  held_.erase(&handle);
  State& state = handle.state;
  if (state.done) return;
  cancel_receive(state);
  watch_.give_up(peers_.own_number(), fmt::format("rank {} has dropped {} before it was over",
                                                  peers_.own_number(), text_of(describe(state))));
  watch_.linger(lock);
  if (state.done) return;
  peers_.cut(state.peer, "closed after a failure");
  const int64_t end = steady_now_ns() + kEndingNs;
  worker_.drive(
      lock, [&] { return state.done || steady_now_ns() >= end; }, [] {});
  if (!state.done) log_error("UCX does not let go of {}", text_of(describe(state)));
}

}  // namespace lockstep::ucx

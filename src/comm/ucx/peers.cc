#include "comm/ucx/peers.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"

namespace lockstep::ucx {
namespace {

constexpr unsigned kNoticeId = 1;
// Closing by force needs nothing of the peer; this only bounds the loop.
constexpr int64_t kClosingNs = 2'000'000'000;

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

Peers::Peers(Worker& worker, int rank, const RankLine& line)
    : worker_(worker), rank_(rank), line_(line), all_(static_cast<size_t>(line.count)) {
  for (int other = 0; other < line.count; ++other) {
    of(other).peers = this;
    of(other).rank = other;
  }
  ucp_am_handler_param_t handler{};
  handler.field_mask =
      UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kNoticeId;
  handler.cb = notice_came;
  handler.arg = this;
  require_ok(library().worker_set_am_recv_handler(worker_.handle(), &handler), "the handler of notices");
}

Peers::~Peers() {
  for (Peer& peer : all_) cut(peer.rank, "closed");
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
  handler.id = kNoticeId;
  library().worker_set_am_recv_handler(worker_.handle(), &handler);
}

std::string Peers::introduction() const {
  return fmt::format("{}\n{}\n{}", host_name(), getpid(), worker_.address());
}

void Peers::connect(const std::vector<std::string>& introductions) {
  LOCKSTEP_CHECK(introductions.size() == all_.size(), "{} introductions for {} ranks", introductions.size(),
                 all_.size());
  for (Peer& peer : all_) {
    if (peer.rank == rank_) continue;
    const std::string& text = introductions[static_cast<size_t>(peer.rank)];
    const size_t host_end = text.find('\n');
    const size_t pid_end = host_end == std::string::npos ? host_end : text.find('\n', host_end + 1);
    if (pid_end == std::string::npos)
      throw CommError("rank {} introduces itself with nonsense", number(peer.rank));
    peer.host = text.substr(0, host_end);
    std::from_chars(text.data() + host_end + 1, text.data() + pid_end, peer.pid);
    ucp_ep_params_t endpoint{};
    endpoint.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER;
    endpoint.address = reinterpret_cast<const ucp_address_t*>(text.data() + pid_end + 1);
    endpoint.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    endpoint.err_handler.cb = connection_failed;
    endpoint.err_handler.arg = &peer;
    const ucs_status_t status = library().ep_create(worker_.handle(), &endpoint, &peer.endpoint);
    if (status != UCS_OK) throw unreachable(peer.rank, library().status_string(status));
  }
  tell_all({});
}

PeerError Peers::unreachable(int rank, const std::string& reason) const {
  return {"meeting", number(rank), fmt::format("{} cannot be reached from rank {}", name(rank), own_number()),
          reason};
}

std::string Peers::name(int rank) const {
  const Peer& peer = of(rank);
  return fmt::format("rank {} (pid {} on {})", number(rank), peer.pid, peer.host);
}

void Peers::tell(int rank, Notice notice) {
  const Peer& peer = of(rank);
  if (peer.endpoint == nullptr || peer.gone) return;
  sent_.remove_if([](const Sent& sent) { return sent.done; });
  notice.rank = rank_;
  sent_.push_back({notice});
  Sent& sent = sent_.back();
  ucp_request_param_t parameters{};
  parameters.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  parameters.cb.send = notice_sent;
  parameters.user_data = &sent;
  const auto bytes = sent.notice.bytes();
  const ucs_status_ptr_t request =
      library().am_send_nbx(peer.endpoint, kNoticeId, nullptr, 0, bytes.data(), bytes.size(), &parameters);
  // What cannot be told is learned from the connection: it fails, and its handler is called.
  if (request == nullptr || UCS_PTR_IS_ERR(request)) sent.done = true;
}

void Peers::tell_all(const Notice& notice) {
  for (const Peer& peer : all_)
    if (peer.rank != rank_) tell(peer.rank, notice);
}

void Peers::notice_sent(void* request, ucs_status_t /*status*/, void* sent) {
  static_cast<Sent*>(sent)->done = true;
  library().request_free(request);
}

ucs_status_t Peers::notice_came(void* self, const void* /*header*/, size_t /*header_bytes*/, void* data,
                                size_t bytes, const ucp_am_recv_param_t* parameters) {
  auto& peers = *static_cast<Peers*>(self);
  if ((parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  const auto notice = parse_notice({static_cast<const std::byte*>(data), bytes});
  if (notice && notice->rank >= 0 && notice->rank < peers.size() && notice->rank != peers.rank_)
    peers.take(*notice);
  return UCS_OK;
}

void Peers::take(const Notice& notice) {
  Peer& peer = of(notice.rank);
  switch (notice.kind) {
    case NoticeKind::kHello: peer.greeted = true; break;
    case NoticeKind::kCall:
      peer.calls.push_back(notice.call);
      peer.last = entry_of(notice);
      break;
    case NoticeKind::kState: peer.last = entry_of(notice); break;
    case NoticeKind::kVerdict:
      peer.failed = true;
      peer.culprit = notice.culprit;
      peer.verdict = notice.verdict();
      peer.owed_answer = true;
      break;
    case NoticeKind::kLeft:
      peer.left = true;
      peer.owed_answer = true;
      break;
    case NoticeKind::kHeard: peer.heard = true; break;
  }
  worker_.tell_news();
}

void Peers::connection_failed(void* peer, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  auto& lost = *static_cast<Peer*>(peer);
  if (!lost.gone) lost.gone = library().status_string(status);
  lost.peers->worker_.tell_news();
}

void Peers::answer() {
  for (Peer& peer : all_)
    if (std::exchange(peer.owed_answer, false)) {
      Notice notice;
      notice.kind = NoticeKind::kHeard;
      tell(peer.rank, notice);
    }
}

bool Peers::all_have_heard() const {
  return std::all_of(all_.begin(), all_.end(), [&](const Peer& peer) {
    return peer.rank == rank_ || peer.endpoint == nullptr || peer.gone || peer.heard;
  });
}

void Peers::cut(int rank, std::string reason) {
  Peer& peer = of(rank);
  if (peer.endpoint == nullptr) return;
  if (!peer.gone) peer.gone = std::move(reason);
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = library().ep_close_nbx(std::exchange(peer.endpoint, nullptr), &parameters);
  if (request == nullptr || UCS_PTR_IS_ERR(request)) return;
  const int64_t give_up = steady_now_ns() + kClosingNs;
  while (library().request_check_status(request) == UCS_INPROGRESS && steady_now_ns() < give_up)
    library().worker_progress(worker_.handle());
  library().request_free(request);
}

}  // namespace lockstep::ucx

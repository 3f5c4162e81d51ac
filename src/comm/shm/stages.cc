#include "comm/shm/stages.h"

#include <algorithm>

namespace lockstep::shm {
namespace {

Call call_of(const Collective& collective, bool direct) {
  return {collective.number,
          static_cast<uint32_t>(collective.kind),
          static_cast<uint32_t>(collective.type),
          static_cast<uint32_t>(collective.order),
          direct ? 1U : 0U,
          collective.count,
          collective.element,
          collective.root};
}

std::string text_of(const Call& call) {
  return fmt::format(
      "{} of {} {} ({} order, root {}, {})",
      lockstep::text_of(static_cast<CollectiveKind>(call.kind), call.number, "", call.count * call.element),
      call.count, name_of(static_cast<SumType>(call.type)),
      call.order == static_cast<uint32_t>(SumOrder::kFast) ? "fast" : "canonical", call.root,
      call.direct != 0 ? "shared buffers" : "mailboxes");
}

}  // namespace

void Stages::meet(const Collective& collective, bool direct) { meet(collective, direct, {}); }

void Stages::meet(const Collective& collective, bool direct, std::span<std::byte* const> buffers) {
  Segment& own = members_.own();
  const uint32_t stage = ++stage_;
  StageRecord& record = own.header().records[stage % 2];
  record.call = call_of(collective, direct);
  record.through_caches = proposal_;
  LOCKSTEP_CHECK(static_cast<int64_t>(buffers.size()) <= kMaxPartials, "{} buffers", buffers.size());
  record.buffers = static_cast<int64_t>(buffers.size());
  std::transform(buffers.begin(), buffers.end(), record.offsets,
                 [&](const std::byte* buffer) { return own.offset_of(buffer); });
  own.header().stage.store(stage);
  watch_.ring_all();

  for (int hop = 1; hop < members_.size(); ++hop) {
    const int peer = (members_.rank + hop) % members_.size();
    const std::atomic<uint32_t>& theirs = members_.of(peer).header().stage;
    const auto ready = [&] {
      return static_cast<int32_t>(theirs.load(std::memory_order_acquire) - stage) >= 0;
    };
    if (!ready()) {
      own.header().collectives.waits_for(collective.number, peer);
      watch_.until(ready, peer, [&] { return lockstep::text_of(collective); });
      own.header().collectives.waits_for(collective.number, -1);
    }
    require_same(collective, record.call, peer);
  }
}

std::byte* Stages::buffer_of(int peer, int64_t index) const {
  return members_.of(peer).at(record_of(peer).offsets[index]);
}

void Stages::require_same(const Collective& collective, const Call& call, int peer) const {
  const Call& theirs = record_of(peer).call;
  if (theirs == call) return;
  throw PeerError(
      lockstep::text_of(collective), peer,
      fmt::format("ranks {} and {} are not in the same operation", members_.rank, peer),
      fmt::format("rank {} runs {}, rank {} runs {}", members_.rank, text_of(call), peer, text_of(theirs)));
}

}  // namespace lockstep::shm

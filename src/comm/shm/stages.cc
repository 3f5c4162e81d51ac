#include "comm/shm/stages.h"

#include <algorithm>

namespace lockstep::shm {

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
      note_wait(collective, members_.number(peer));
      watch_.until(ready, peer, [&] { return lockstep::text_of(collective); });
      note_wait(collective, -1);
    }
    require_same(collective, record.call, peer);
  }
}

void Stages::note_wait(const Collective& collective, int number) {
  members_.own().header().collectives.waits_for(collective.number, number);
  if (also_ != nullptr) also_->waits_for(collective.number, number);
}

std::byte* Stages::buffer_of(int peer, int64_t index) const {
  return members_.of(peer).at(record_of(peer).offsets[index]);
}

void Stages::require_same(const Collective& collective, const Call& call, int peer) const {
  const Call& theirs = record_of(peer).call;
  if (theirs == call) return;
  throw different_calls(collective, members_.number(members_.rank), call, members_.number(peer), theirs);
}

}  // namespace lockstep::shm

#include "comm/call.h"

namespace lockstep {

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
      text_of(static_cast<CollectiveKind>(call.kind), call.number, "", call.count * call.element), call.count,
      name_of(static_cast<SumType>(call.type)),
      call.order == static_cast<uint32_t>(SumOrder::kFast) ? "fast" : "canonical", call.root,
      call.direct != 0 ? "shared buffers" : "mailboxes");
}

PeerError different_calls(const Collective& collective, int rank, const Call& own, int peer,
                          const Call& theirs) {
  return {text_of(collective), peer, fmt::format("ranks {} and {} are not in the same operation", rank, peer),
          fmt::format("rank {} runs {}, rank {} runs {}", rank, text_of(own), peer, text_of(theirs))};
}

}  // namespace lockstep

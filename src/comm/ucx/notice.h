// What ranks tell each other beside the data: which collective they enter and leave, for whom they wait, that
// they have failed or leave.
//
// So a rank knows what each peer was last doing although it cannot look into its memory, and compares the
// calls of all ranks. All ranks run the same version on the same kind of machine: a notice travels as it is.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/call.h"
#include "comm/ledger.h"

namespace lockstep::ucx {

enum class NoticeKind : uint32_t {
  kHello,    // the connection stands
  kCall,     // enters a collective
  kState,    // what its ledger says now: it has finished, or waits for somebody
  kVerdict,  // has given up; the text says why
  kLeft,     // leaves the group
  kHeard     // answers the last two: this peer knows
};

struct Notice {
  NoticeKind kind = NoticeKind::kHello;
  int32_t rank = 0;  // whose
  Call call = {};    // what it is about
  LedgerState state = LedgerState::kEmpty;
  int32_t waiting_for = -1;
  int32_t culprit = -1;
  int64_t age_ns = 0;  // of the state, when sent
  std::array<char, 32> label = {};
  uint32_t text_bytes = 0;
  std::array<char, 512> text = {};  // only text_bytes of it travel

  std::span<const std::byte> bytes() const;
  std::string_view verdict() const { return {text.data(), text_bytes}; }
};

// Of what a ledger says; the kind is kState.
Notice notice_of(const LedgerEntry& entry);
Notice verdict_notice(int culprit, std::string_view verdict);
// Nothing when the bytes are no notice.
std::optional<Notice> parse_notice(std::span<const std::byte> bytes);
// What the notice says its rank does, on this machine's clock.
LedgerEntry entry_of(const Notice& notice);

}  // namespace lockstep::ucx

#include "comm/ucx/notice.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace lockstep::ucx {

static_assert(std::is_trivially_copyable_v<Notice>);

std::span<const std::byte> Notice::bytes() const {
  return {reinterpret_cast<const std::byte*>(this), offsetof(Notice, text) + text_bytes};
}

Notice notice_of(const LedgerEntry& entry) {
  Notice notice;
  notice.kind = NoticeKind::kState;
  notice.call.number = entry.number;
  notice.call.kind = static_cast<uint32_t>(entry.kind);
  notice.call.count = entry.bytes;
  notice.call.element = 1;
  notice.state = entry.state;
  notice.waiting_for = entry.waiting_for;
  notice.age_ns = steady_now_ns() - entry.since_ns;
  std::memcpy(notice.label.data(), entry.label.data(), std::min(entry.label.size(), notice.label.size()));
  return notice;
}

Notice verdict_notice(int culprit, std::string_view verdict) {
  Notice notice;
  notice.kind = NoticeKind::kVerdict;
  notice.culprit = culprit;
  notice.text_bytes = static_cast<uint32_t>(std::min(verdict.size(), notice.text.size()));
  std::memcpy(notice.text.data(), verdict.data(), notice.text_bytes);
  return notice;
}

std::optional<Notice> parse_notice(std::span<const std::byte> bytes) {
  Notice notice;
  if (bytes.size() < offsetof(Notice, text) || bytes.size() > sizeof notice) return {};
  std::memcpy(static_cast<void*>(&notice), bytes.data(), bytes.size());
  if (notice.kind > NoticeKind::kHeard || notice.bytes().size() != bytes.size()) return {};
  // Numbers that no rank sends would overflow where they are used.
  constexpr int64_t kMost = int64_t{1} << 56;
  const auto outside = [](int64_t value) { return value < 0 || value > kMost; };
  const int64_t count = notice.call.count, element = notice.call.element;
  if (notice.state > LedgerState::kFailed || outside(count) || outside(element) ||
      (count > 0 && element > kMost / count) || outside(notice.age_ns))
    return {};
  return notice;
}

LedgerEntry entry_of(const Notice& notice) {
  LedgerEntry entry;
  entry.number = notice.call.number;
  entry.kind = static_cast<CollectiveKind>(notice.call.kind);
  entry.state = notice.state;
  entry.bytes = notice.call.count * notice.call.element;
  entry.since_ns = steady_now_ns() - notice.age_ns;
  entry.waiting_for = notice.waiting_for;
  entry.label.assign(notice.label.data(), strnlen(notice.label.data(), notice.label.size()));
  return entry;
}

}  // namespace lockstep::ucx

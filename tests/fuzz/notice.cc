#include "fuzz/notice.h"

#include "base/error.h"
#include "comm/ucx/notice.h"

namespace lockstep::testing {

bool check_notice(std::string_view bytes) {
  const auto notice = ucx::parse_notice(std::as_bytes(std::span(bytes)));
  if (!notice) return false;
  LOCKSTEP_CHECK(notice->bytes().size() == bytes.size() && bytes.ends_with(notice->verdict()),
                 "{} bytes were {}", notice->bytes().size(), bytes.size());
  const LedgerEntry entry = entry_of(*notice);
  LOCKSTEP_CHECK(entry.bytes >= 0 && entry.label.size() <= notice->label.size(), "{} bytes", entry.bytes);
  LOCKSTEP_CHECK(!text_of(entry, steady_now_ns()).empty() && !text_of(notice->call).empty(), "no text");
  return true;
}

}  // namespace lockstep::testing

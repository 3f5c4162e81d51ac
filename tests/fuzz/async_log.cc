#include "fuzz/async_log.h"

#include "async/apply_log.h"
#include "base/error.h"

namespace lockstep::testing {

bool check_async_log(std::string_view bytes) {
  try {
    const async::ApplyLog log = async::parse_log(bytes, "pushes.log");
    LOCKSTEP_CHECK(log.whole_bytes + log.tail_bytes == static_cast<int64_t>(bytes.size()),
                   "bytes are missing");
    LOCKSTEP_CHECK(
        async::log_bytes(log.header, log.pushes) == bytes.substr(0, static_cast<size_t>(log.whole_bytes)),
        "a log is not written as it was read");
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace lockstep::testing

#include "fuzz/async_frame.h"

#include <cstring>

#include "async/frame.h"
#include "base/error.h"

namespace lockstep::testing {
namespace {

void check_payload(const async::AsyncHeader& header, std::string_view text) {
  const auto payload = std::as_bytes(std::span(text));
  const auto same = [&](const auto& value) {
    LOCKSTEP_CHECK(std::memcmp(&value, payload.data(), payload.size()) == 0, "a payload does not read back");
  };
  if (header.kind == async::AsyncKind::kApply) same(async::apply_order(payload));
  if (header.kind == async::AsyncKind::kPush) same(async::push_facts(payload));
  if (header.kind == async::AsyncKind::kGive) same(async::give_order(payload));
}

}  // namespace

bool check_async_frame(std::string_view bytes) {
  bool frames = false;
  try {
    while (bytes.size() >= async::kAsyncHeaderBytes) {
      async::AsyncHeaderBytes head;
      std::memcpy(head.data(), bytes.data(), head.size());
      bytes.remove_prefix(head.size());
      const async::AsyncHeader header = async::decode(head);
      LOCKSTEP_CHECK(async::encode(header) == head, "a header does not encode to what it was read from");
      check_payload(header, bytes.substr(0, header.payload));
      bytes.remove_prefix(std::min<size_t>(bytes.size(), header.payload));
      frames = true;
    }
    return frames && bytes.empty();
  } catch (const CommError&) {
    return false;
  }
}

}  // namespace lockstep::testing

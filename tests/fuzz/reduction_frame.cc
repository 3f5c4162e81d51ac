#include "fuzz/reduction_frame.h"

#include <cstring>

#include "base/error.h"
#include "reduction/frame.h"
#include "reduction/reducer.h"
#include "reduction/terms.h"

namespace lockstep::testing {
namespace {

using namespace lockstep::reduction;

void check_terms(std::string_view text) {
  const SessionTerms terms = parse_terms(text);
  const SessionTerms again = parse_terms(to_text(terms));
  LOCKSTEP_CHECK(again.same_run(terms) && again.rank == terms.rank && again.host == terms.host,
                 "terms do not read back as they were");
}

// The payload may be cut off: it then ends in zeros.
Bytes payload_of(std::string_view bytes, const FrameHeader& header) {
  Bytes payload(new std::byte[header.payload]());
  std::memcpy(payload.get(), bytes.data(), std::min<size_t>(bytes.size(), header.payload));
  return payload;
}

}  // namespace

bool check_reduction_frame(std::string_view bytes) {
  Reducer reducer({.session = "run", .ranks = 2, .leaves = 3, .ends = {1, 3}});
  bool frames = false;
  try {
    for (int64_t turn = 0; bytes.size() >= kHeaderBytes; ++turn) {
      HeaderBytes head;
      std::memcpy(head.data(), bytes.data(), head.size());
      bytes.remove_prefix(head.size());
      const FrameHeader header = reduction::decode(head);
      LOCKSTEP_CHECK(encode(header) == head, "a header does not encode to what it was read from");
      if (header.kind == FrameKind::kJoin) check_terms(bytes.substr(0, header.payload));
      if (header.kind == FrameKind::kPartials) {
        const int64_t host = turn % 2;
        const auto root =
            reducer.add({.host = host, .rank = host, .header = header, .data = payload_of(bytes, header)});
        if (root) reduction::decode(encode(root->header));
      }
      bytes.remove_prefix(std::min<size_t>(bytes.size(), header.payload));
      frames = true;
    }
    return frames && bytes.empty();
  } catch (const CommError&) {
    return false;
  }
}

}  // namespace lockstep::testing

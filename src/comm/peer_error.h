// A CommError with its parts: which operation failed, because of which peer, and what that peer last did.
//
// Recoverable: the group is of no use any more, but the process is; a new group can be formed without the
// culprit.
#pragma once
#include <string>
#include <utility>

#include "base/error.h"

namespace lockstep {

class PeerError : public CommError {
 public:
  PeerError(std::string operation, int peer, std::string what_happened, std::string last_did)
      : CommError("{}: {}; {}", operation, what_happened, last_did),
        operation_(std::move(operation)),
        peer_(peer),
        last_did_(std::move(last_did)) {}
  // Another rank's verdict, passed on as it was given.
  PeerError(std::string operation, int peer, std::string verdict)
      : CommError("{}", verdict),
        operation_(std::move(operation)),
        peer_(peer),
        last_did_(std::move(verdict)) {}

  const std::string& operation() const { return operation_; }
  // The rank at fault, as far as is known.
  int peer() const { return peer_; }
  const std::string& last_did() const { return last_did_; }

 private:
  std::string operation_;
  int peer_;
  std::string last_did_;
};

}  // namespace lockstep

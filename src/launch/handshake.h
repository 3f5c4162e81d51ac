// How processes that serve a run and those who use them get acquainted: each proves that it knows the run's
// token, as with the rendezvous store (launch/token.h), before anything else is said.
#pragma once
#include <string>
#include <string_view>

#include "launch/tcp.h"

namespace lockstep {

// What is spoken after the handshake, and what serves: "lockstep-reduce-1", "a Reduction Server".
struct ServedProtocol {
  std::string_view name, server;
};

// Of who connects. CommError when the server refuses, is silent, or does not know the token itself.
void greet(const Descriptor& socket, const ServedProtocol& protocol, std::string_view token,
           std::string_view name, TimePoint deadline);
// The server's side: the name of who has shown the token. CommError says what is wrong with a stranger.
std::string recognise(const Descriptor& socket, const ServedProtocol& protocol, std::string_view token,
                      TimePoint deadline);

}  // namespace lockstep

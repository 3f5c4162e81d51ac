// How a worker and a Reduction Server get acquainted: each proves that it knows the run's token, as with the
// rendezvous store (launch/token.h), before anything else is said.
#pragma once
#include <string>
#include <string_view>

#include "launch/tcp.h"

namespace lockstep::reduction {

// The worker's side. CommError when the server refuses, is silent, or does not know the token itself.
void greet(const Descriptor& socket, std::string_view token, std::string_view name, TimePoint deadline);
// The server's side: the name of who has shown the token. CommError says what is wrong with a stranger.
std::string recognise(const Descriptor& socket, std::string_view token, TimePoint deadline);

}  // namespace lockstep::reduction

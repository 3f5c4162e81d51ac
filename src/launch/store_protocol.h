// What both ends of a store's connection must spell alike.
#pragma once
#include <string_view>

namespace lockstep {

inline constexpr std::string_view kStoreProtocol = "lockstep-store-1";
// The answer to a wrong proof; a client that waits for its token to be written may try again.
inline constexpr std::string_view kOtherToken = "the token is another one";

}  // namespace lockstep

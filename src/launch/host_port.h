// "host:port" as cluster specifications write it: gpu1:2222, 10.0.0.1:2222, [fe80::1]:2222.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

struct HostPort {
  std::string host;
  int64_t port = 0;
};

// UserError starting with `where` unless the text is a host, a colon and a port from 1 to 65535.
HostPort parse_host_port(std::string_view text, std::string_view where);
std::string to_string(const HostPort& address);

}  // namespace lockstep

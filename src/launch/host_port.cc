#include "launch/host_port.h"

#include <charconv>

#include "base/error.h"
#include "launch/variables.h"

namespace lockstep {

HostPort parse_host_port(std::string_view text, std::string_view where) {
  const size_t colon = text.rfind(':');
  std::string_view host = text.substr(0, colon == std::string_view::npos ? 0 : colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of(":[]") != std::string_view::npos)
    host = {};  // an IPv6 address whose port could not be told from its last group

  const std::string_view digits = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  int64_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool is_port =
      error == std::errc() && end == digits.data() + digits.size() && port >= 1 && port <= 65535;
  if (host.empty() || host.size() > 255 || !is_port)
    throw UserError("{}: {} is not host:port; write it like gpu1:2222 or [fe80::1]:2222", where,
                    in_quotes(text));
  return {std::string(host), port};
}

std::string to_string(const HostPort& address) {
  const bool bare = address.host.find(':') == std::string::npos;
  return fmt::format("{}{}{}:{}", bare ? "" : "[", address.host, bare ? "" : "]", address.port);
}

}  // namespace lockstep

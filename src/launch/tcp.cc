#include "launch/tcp.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/log.h"

namespace lockstep {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Throws CommError when the name has no address.
Addresses resolve(const HostPort& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (code != 0) throw CommError("no address for {}: {}", to_string(address), gai_strerror(code));
  return {list, freeaddrinfo};
}

Descriptor make_socket(const addrinfo& address) {
  return Descriptor(socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool is_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in*>(address.ai_addr)->sin_addr;
    return (ntohl(ip.s_addr) >> 24) == 127;
  }
  if (address.ai_family != AF_INET6) return false;
  const auto& ip = reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr;
  return std::memcmp(&ip, &in6addr_loopback, sizeof ip) == 0;
}

std::string numeric(const addrinfo& address) {
  char host[NI_MAXHOST] = "";
  getnameinfo(address.ai_addr, address.ai_addrlen, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

void switch_on(const Descriptor& descriptor, int level, int option) {
  const int on = 1;
  setsockopt(descriptor.get(), level, option, &on, sizeof on);
}

bool wait_for(const Descriptor& descriptor, short events, TimePoint deadline) {
  while (true) {
    pollfd entry = {descriptor.get(), events, 0};
    const int ready = poll(&entry, 1, poll_timeout(deadline));
    if (ready > 0) return true;
    if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) throw CommError("poll: {}", std::strerror(errno));
  }
}

// 0, or the errno of a connection attempt.
int try_connect(const Descriptor& descriptor, const addrinfo& address, TimePoint deadline) {
  if (!descriptor) return errno;
  if (connect(descriptor.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(descriptor, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(descriptor.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

}  // namespace

std::string address_for_others(const std::string& host) {
  try {
    const Addresses list = resolve({host, 0}, 0);
    for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next)
      if (!is_loopback(*one)) return numeric(*one);
  } catch (const CommError&) {
    return host;
  }
  log_warn(
      "{} stands for loopback addresses on this host, on which no other host reaches it: the store listens "
      "on "
      "all addresses; give the address of one network as the master's",
      host);
  return host.find(':') == std::string::npos ? "0.0.0.0" : "::";
}

Descriptor listen_on(const HostPort& address) {
  int error = 0;
  try {
    const Addresses list = resolve(address, AI_PASSIVE);
    for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next) {
      Descriptor listener = make_socket(*one);
      // Without it a port stays taken for a minute after a run that used it.
      switch_on(listener, SOL_SOCKET, SO_REUSEADDR);
      if (listener && bind(listener.get(), one->ai_addr, one->ai_addrlen) == 0 &&
          listen(listener.get(), SOMAXCONN) == 0)
        return listener;
      error = errno;
    }
  } catch (const CommError& unknown_name) {
    throw UserError("cannot listen on {}: {}", to_string(address), unknown_name.what());
  }
  if (error == EADDRINUSE)
    throw UserError(
        "port {} of {} is in use by another program, perhaps another run; choose a free one with "
        "--master-port "
        "or MASTER_PORT",
        address.port, address.host);
  if (error == EADDRNOTAVAIL)
    throw UserError(
        "{} is not an address of this host; worker 0 must run where --master-addr points; where addresses "
        "are "
        "translated on the way, set LOCKSTEP_LISTEN=0.0.0.0 for worker 0",
        address.host);
  throw UserError("cannot listen on {}: {}", to_string(address), std::strerror(error));
}

int64_t bound_port(const Descriptor& listener) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&storage), &length) != 0)
    throw InternalError("getsockname: {}", std::strerror(errno));
  char port[NI_MAXSERV] = "";
  getnameinfo(reinterpret_cast<sockaddr*>(&storage), length, nullptr, 0, port, sizeof port, NI_NUMERICSERV);
  return std::stoll(port);
}

Descriptor connect_to(const HostPort& address, TimePoint deadline) {
  const Addresses list = resolve(address, 0);
  int error = ETIMEDOUT;
  for (const addrinfo* one = list.get(); one != nullptr; one = one->ai_next) {
    Descriptor connection = make_socket(*one);
    error = try_connect(connection, *one, deadline);
    if (error == 0) {
      // Requests are small and each waits for its answer.
      switch_on(connection, IPPROTO_TCP, TCP_NODELAY);
      switch_on(connection, SOL_SOCKET, SO_KEEPALIVE);
      return connection;
    }
  }
  throw CommError("cannot connect to {}: {}", to_string(address), std::strerror(error));
}

void acknowledge(const Descriptor& connection) { switch_on(connection, IPPROTO_TCP, TCP_QUICKACK); }

std::string peer_of(const Descriptor& connection) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  if (getpeername(connection.get(), reinterpret_cast<sockaddr*>(&storage), &length) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&storage), length, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "somebody";
  return fmt::format("{}:{}", host, port);
}

bool wait_readable(const Descriptor& descriptor, TimePoint deadline) {
  return wait_for(descriptor, POLLIN, deadline);
}
bool wait_writable(const Descriptor& descriptor, TimePoint deadline) {
  return wait_for(descriptor, POLLOUT, deadline);
}

int poll_timeout(TimePoint deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
}

}  // namespace lockstep

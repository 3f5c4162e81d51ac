#include "comm/ucx/interface.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>

namespace lockstep::ucx {
namespace {

bool same_address(const sockaddr* a, const sockaddr* b) {
  if (a == nullptr || a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b)->sin_addr.s_addr;
  return a->sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr, sizeof(in6_addr)) == 0;
}

std::string interface_with(const sockaddr* address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  std::string name;
  for (const ifaddrs* one = list; one != nullptr && name.empty(); one = one->ifa_next)
    if (same_address(one->ifa_addr, address)) name = one->ifa_name;
  freeifaddrs(list);
  return name;
}

// A connected datagram socket has the address that packets to the other side would leave from; none is sent.
std::string interface_of_route(const addrinfo& to) {
  const int fd = socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  const bool known = connect(fd, to.ai_addr, to.ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0;
  close(fd);
  return known ? interface_with(reinterpret_cast<const sockaddr*>(&own)) : std::string();
}

// ",mlx5_0:1,mlx5_1:1"
std::string rdma_ports() {
  std::string ports;
  std::error_code none;
  for (const auto& card : std::filesystem::directory_iterator("/sys/class/infiniband", none))
    for (const auto& port : std::filesystem::directory_iterator(card.path() / "ports", none))
      ports += fmt::format(",{}:{}", card.path().filename().string(), port.path().filename().string());
  return ports;
}

}  // namespace

bool has_rdma() { return !rdma_ports().empty(); }

std::string interface_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_family = AF_UNSPEC;
  addrinfo* found = nullptr;
  // The port plays no part, but a datagram socket cannot be connected to port 0.
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return {};
  std::string name;
  for (const addrinfo* one = found; one != nullptr && name.empty(); one = one->ai_next)
    name = interface_of_route(*one);
  freeaddrinfo(found);
  return name.empty() || name == "lo" ? name : name + rdma_ports();
}

}  // namespace lockstep::ucx

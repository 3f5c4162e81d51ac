#include "launch/store_connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace lockstep {

bool StoreConnection::read_some(TimePoint now) {
  std::array<char, size_t{64} << 10> buffer;
  const ssize_t got = recv(socket.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  // A stranger's clock is not reset by sending a byte now and then.
  if (known()) since = now;
  reader.feed({buffer.data(), static_cast<size_t>(got)});
  return true;
}

bool StoreConnection::write_some(TimePoint now) {
  while (!output.empty()) {
    const ssize_t sent = send(socket.get(), output.data(), output.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    output.erase(0, static_cast<size_t>(sent));
    if (known()) since = now;
  }
  return true;
}

}  // namespace lockstep

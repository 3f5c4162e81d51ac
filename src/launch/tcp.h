// The few TCP calls that the store needs: non-blocking, close-on-exec, every wait with a deadline.
#pragma once
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "launch/descriptor.h"
#include "launch/host_port.h"

namespace lockstep {

using TimePoint = std::chrono::steady_clock::time_point;

// The address on which others reach `host`, which is this one: a name may stand for loopback addresses too.
// Where it stands for nothing else here (as /etc/hosts often has it), the address that means all of this
// host's, and the log says so. Of a name that has no address, the name.
std::string address_for_others(const std::string& host);

// Port 0 gives a free one. UserError when the port is in use or the address is not this host's.
Descriptor listen_on(const HostPort& address);
int64_t bound_port(const Descriptor& listener);

// Acknowledges what has been received from this connection at once, instead of up to 40 ms later with the
// next answer: for a peer that waits for room to send on. To be said again after every read.
void acknowledge(const Descriptor& connection);
// One attempt. CommError says why not.
Descriptor connect_to(const HostPort& address, TimePoint deadline);

// "10.0.0.7:51234", the other end of a connection.
std::string peer_of(const Descriptor& connection);

// Waits until the descriptor can be read (or written); false when the deadline came first.
bool wait_readable(const Descriptor& descriptor, TimePoint deadline);
bool wait_writable(const Descriptor& descriptor, TimePoint deadline);

// Milliseconds until then for poll(2): rounded up, at least 0.
int poll_timeout(TimePoint deadline);

}  // namespace lockstep

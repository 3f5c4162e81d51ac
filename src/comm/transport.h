// Moves bytes between the ranks of a group, in the way its medium does best.
//
// A transport runs one collective at a time, to its end, on the thread that asks. Group (comm/group.h) gives
// it order, numbers and a thread of its own. Every wait in here has a deadline; what goes wrong with a peer
// is a PeerError that names the operation, the peer and what it last did.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/collective.h"
#include "comm/ledger.h"
#include "comm/message_port.h"
#include "comm/served_figures.h"
#include "comm/sum_program.h"

namespace lockstep {

struct WaitLimits {
  std::chrono::milliseconds stall{5000};      // then a message says who waits for whom
  std::chrono::milliseconds deadline{60000};  // then the wait fails
};

class Transport : public MessagePort {
 public:
  virtual std::string_view name() const = 0;
  // What messages and errors call a rank: its number among all ranks of the run, of whom these may be a part.
  virtual int number(int rank) const { return rank; }

  // Memory that peers can reach without a copy in between. Any other memory may be given to a collective too,
  // at the price of a copy; but then by all ranks alike.
  virtual std::byte* allocate(int64_t bytes) = 0;
  virtual void release(std::byte* memory) noexcept = 0;

  // This rank among those who reach the memory that allocate() gives them; nothing where no two ranks of the
  // group do.
  virtual std::optional<HostPlace> host() const { return std::nullopt; }
  // How the ranks of a host name such memory to each other, and where one of them finds what another has
  // named; `index` is the other's place on the host.
  virtual int64_t name_of_memory(const std::byte* memory) const {
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(memory));
  }
  virtual std::byte* memory_of(int /*index*/, int64_t name) const {
    return reinterpret_cast<std::byte*>(static_cast<intptr_t>(name));
  }

  // `program` completes the tree of a reduction.
  virtual void run(const Collective& collective, const SumProgram& program) = 0;

  // The messages that collectives are made of. They are sent by the thread that runs collectives, so their
  // order is apart from that of the caller's messages wherever both are in use.
  virtual MessagePort& collective_messages() { return *this; }

  // Tells the peers that this rank has given up, and why, so that nobody has to wait for the deadline. Waits
  // of this rank end too.
  virtual void fail(int culprit, std::string_view verdict) noexcept = 0;
  // What a rank that waits in a collective does meanwhile, again and again: it moves the messages of
  // another group. Set before the first collective.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): those that wait keep it
  virtual void while_waiting(std::function<void()> /*moves*/) {}
  // Where this rank's collectives are written down for the peers to read.
  virtual Ledger& ledger() = 0;
  // What a rank was last seen doing, as a clause.
  virtual std::string last_did(int rank) const = 0;
  // That this rank has sent over a network so far.
  virtual int64_t network_bytes() const { return 0; }
  // What Reduction Servers have done for this rank; null where there are none.
  virtual const ServedFigures* served() const { return nullptr; }
};

}  // namespace lockstep

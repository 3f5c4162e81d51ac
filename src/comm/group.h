// A group of ranks that runs collectives in one common order.
//
// Reductions follow the canonical tree: each rank gives its partial sums (comm/leaf_split.h), the owner of
// each block completes the tree, and the bits of the result do not depend on how many ranks there are. Calls
// either run at once, on the calling thread, or are started and waited for: then a thread of the group runs
// them, in the order in which they were started, while the caller computes. All ranks must call the same
// collectives in the same order. A group is used by one thread.
//
// After a PeerError the group is broken: every further call throws the same. A new one can be formed.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "comm/leaf_split.h"
#include "comm/transport.h"

namespace lockstep {

// Memory that the peers can read; goes back with its last owner, who may outlive the group.
class SharedBuffer {
 public:
  SharedBuffer() = default;
  SharedBuffer(std::shared_ptr<Transport> transport, int64_t bytes);
  SharedBuffer(SharedBuffer&& other) noexcept;
  SharedBuffer& operator=(SharedBuffer&& other) noexcept;
  ~SharedBuffer();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::shared_ptr<Transport> transport_;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Memory that all ranks of a host hold together: one of them has taken it, and it goes back when the last of
// them has left the group.
class HostBuffer {
 public:
  HostBuffer(std::shared_ptr<Transport> transport, std::byte* data, int64_t bytes)
      : transport_(std::move(transport)), data_(data), bytes_(bytes) {}

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Transport> transport_;
  std::byte* data_;
  int64_t bytes_;
};

struct Reduction {
  SumType type = SumType::kF32;
  int64_t count = 0;  // elements of each buffer; of SumType::kInt8 its blocks
  // This rank's partial sums in the order of leaves (LeafSplit::partials); with SumOrder::kFast its one sum.
  // The first one receives the result: all of it, or this rank's slice_of the elements. The others keep
  // theirs.
  std::span<void* const> partials = {};
  SumOrder order = SumOrder::kCanonical;
  std::string label = {};
  // Called around it, by the thread that runs it: to bring the partial sums to where this group reaches them,
  // and the result back. What they throw fails the operation.
  std::function<void()> before = {}, after = {};
};

struct Gather {
  void* data = nullptr;  // all elements; this rank's slice_of them is filled in
  int64_t count = 0;
  int64_t element_bytes = 4;
  std::string label = {};
  // The ranks of a host give the same memory (allocate_for_host): a slice comes to it once, and not at all
  // from a neighbour. True on all ranks or on none, also of hosts with a single one.
  bool held_once = false;
  // As those of a reduction.
  std::function<void()> before = {}, after = {};
};

// An all_to_all with something to do around it.
struct PieceExchange {
  std::span<const std::byte> send = {};
  std::span<std::byte> receive = {};
  std::string label = {};
  // As those of a reduction.
  std::function<void()> before = {}, after = {};
};

// A barrier with something to do around it: what ranks do to each other's memory beside the group.
struct Meeting {
  std::string label = {};
  // As those of a reduction.
  std::function<void()> before = {}, after = {};
};

class Group {
  struct Operation;

 public:
  using Ticket = std::shared_ptr<Operation>;

  // The split says which leaves each rank sums; LeafSplit::one_each where ranks are the leaves. `name` stands
  // before the label of every collective, in messages and in the ledger.
  Group(std::unique_ptr<Transport> transport, const LeafSplit& split, std::string name = {});
  // What is still under way fails, here and at the peers who wait for it.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const;
  int size() const;
  const LeafSplit& split() const;
  SharedBuffer allocate(int64_t bytes);
  // This rank among those of its host, who share memory; nothing where no two ranks of the group do.
  std::optional<HostPlace> host() const;
  // All ranks call it together; those of a host get the same memory, zeros at first. What one of them writes
  // the others may read after a barrier.
  HostBuffer allocate_for_host(int64_t bytes, const std::string& label = {});

  void all_reduce(const Reduction& reduction);
  void reduce_scatter(const Reduction& reduction);
  void all_gather(const Gather& gather);
  void broadcast(std::span<std::byte> data, int root, const std::string& label = {});
  // Piece p of `send` goes to rank p; piece p of `receive` comes from rank p. Pieces are equally long.
  void all_to_all(std::span<const std::byte> send, std::span<std::byte> receive,
                  const std::string& label = {});
  void barrier(const std::string& label = {});
  void meet(const Meeting& meeting);
  // Waits for the ranks of this host alone.
  void host_barrier(const std::string& label = {});
  void send(int peer, std::span<const std::byte> data);
  void receive(int peer, std::span<std::byte> data);

  // Moves messages of this group that can be moved without waiting.
  void move_messages();
  // What the thread that uses this group does while it waits in it: it moves the messages of another group,
  // which would stand still. Set before the first call.
  void while_waiting(std::function<void()> moves);

  // The memory must not be touched until the ticket has been waited for.
  Ticket start_all_reduce(const Reduction& reduction);
  Ticket start_reduce_scatter(const Reduction& reduction);
  Ticket start_all_gather(const Gather& gather);
  Ticket start_broadcast(std::span<std::byte> data, int root, const std::string& label = {});
  Ticket start_all_to_all(std::span<const std::byte> send, std::span<std::byte> receive,
                          const std::string& label = {});
  Ticket start_exchange(const PieceExchange& exchange);
  Ticket start_meeting(const Meeting& meeting);
  Ticket start_send(int peer, std::span<const std::byte> data);
  Ticket start_receive(int peer, std::span<std::byte> data);
  // Without waiting. A message moves only while this rank waits, so it is not over before its wait.
  bool is_done(const Ticket& ticket) const;
  // Returns when the operation is over; throws what went wrong with it.
  void wait(const Ticket& ticket);

  // That this rank has sent over a network so far.
  int64_t network_bytes() const;
  // What Reduction Servers have done for this rank; null where there are none.
  const ServedFigures* served() const;
  // What a rank was last seen doing, for messages.
  std::string last_did(int rank) const;

 private:
  class Runner;
  std::unique_ptr<Runner> runner_;
};

}  // namespace lockstep

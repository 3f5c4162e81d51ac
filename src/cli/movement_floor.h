// What no all_reduce in place over shared memory can do without, measured on the spot: every rank reads its
// share of everybody's buffer, adds, and the sums get into everybody's buffer. The ranks meet at the start
// and at the end of it, and do nothing else: no order of additions, no ledger, no deadline, nothing shown to
// peers. Of several ways to move the data (cli/simd/movement_loops.h) the fastest counts, and of that its
// fastest batch.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep {

class MovementFloor {
 public:
  // Below this, data fits into a message, and other ways than these are the least.
  static constexpr int64_t kLeastBytes = 64 << 10;

  // Memory for buffers of up to `most_bytes`, shared by the processes or threads that start after this.
  MovementFloor(int ranks, int64_t most_bytes);
  ~MovementFloor();
  MovementFloor(const MovementFloor&) = delete;
  MovementFloor& operator=(const MovementFloor&) = delete;

  // The time of a call. Every rank calls it, with the same bytes; throws CommError if one does not.
  double microseconds(int rank, int64_t bytes, double seconds);

 private:
  struct Header;
  enum class Way : int;
  void meet(int rank);
  void move(Way way, int rank, int64_t lines);
  double batch(Way way, int rank, int64_t lines, int64_t calls);
  float* buffer(int rank) const;

  int ranks_;
  int spins_;
  int64_t stride_;
  size_t mapped_;
  Header* header_;
};

}  // namespace lockstep

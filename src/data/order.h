// Order: which record stands at a position of a run, as a pure function of (seed, size, position).
//
// Positions count records from the start of the run; epoch = position / size, and each epoch is its own
// permutation. Nothing is stored and nothing advances, so resuming is arithmetic, and any number of workers
// with any batch size walk the same order, each record exactly once per epoch.
//
// The permutation is a keyed Feistel network over the smallest number of bits that holds size - 1, at least
// kMinBits; results outside [0, size) are sent through the network again (cycle walking), fewer than two
// times on average except for tiny sizes. Round keys come from Philox, keyed by the seed and the epoch.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace lockstep {

// Part of a run's identity: changes whenever record_at gives another answer for the same arguments.
inline constexpr int kOrderVersion = 1;

// A permutation of [0, size).
class Permutation {
 public:
  // Streams tell permutations of one seed apart (here: epochs).
  Permutation(uint64_t seed, uint64_t stream, int64_t size);

  int64_t operator()(int64_t index) const;

 private:
  static constexpr int kRounds = 6;
  static constexpr int kMinBits = 6;

  uint64_t encrypt(uint64_t value) const;

  uint64_t size_;
  int left_bits_;
  int right_bits_;
  std::array<uint64_t, kRounds> keys_;
};

class Order {
 public:
  // Throws UserError for size 0. Without shuffling, record = position % size.
  Order(uint64_t seed, int64_t size, bool shuffle = true);

  int64_t size() const { return size_; }
  int64_t epoch_of(int64_t position) const { return position / size_; }
  int64_t record_at(int64_t position) const;
  // out[i] = record_at(first + i), with the epoch's keys computed once.
  void records(int64_t first, std::span<int64_t> out) const;

 private:
  uint64_t seed_;
  int64_t size_;
  bool shuffle_;
};

}  // namespace lockstep

// ReadOrder: which record stands at a position of a run, for one source or for several that are mixed.
//
// Mixed sources are consecutive parts of the records, each read in an order of its own, epoch after epoch;
// order/mixture.h says which part a position draws from.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/order/mixture.h"
#include "data/order/order.h"

namespace lockstep {

class ReadOrder {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): an order is the order of one source
  ReadOrder(const Order& order) : size_(order.size()), orders_{order} {}
  // `parts` are the records of each source, as they follow each other. Throws UserError for a source without
  // records, and for weights that are not as many or none at all.
  ReadOrder(uint64_t seed, const std::vector<int64_t>& parts, const OrderShape& shape, Shuffle shuffle,
            const std::vector<MixtureShares>& shares);

  int64_t size() const { return size_; }
  bool mixed() const { return mixture_.has_value(); }
  // The sources: their first records, and how many they have.
  int64_t parts() const { return static_cast<int64_t>(orders_.size()); }
  int64_t first_of(int64_t part) const { return mixture_ ? firsts_[static_cast<size_t>(part)] : 0; }
  int64_t size_of(int64_t part) const { return orders_[static_cast<size_t>(part)].size(); }
  // The source that a record belongs to.
  int64_t part_of(int64_t record) const;
  // Lanes with blocks of their own; 1 where there are none.
  int64_t lanes() const { return mixture_ ? 1 : orders_[0].lanes(); }
  // Replaces positions by their records; those of mixed sources must follow each other. Epochs are those of
  // the source that a record is of.
  void records_at(std::span<int64_t> positions, std::vector<int64_t>* epochs = nullptr) const;

 private:
  void mixed_records_at(std::span<int64_t> positions, std::span<int64_t> epochs) const;

  int64_t size_;
  std::vector<Order> orders_;
  std::vector<int64_t> firsts_ = {};  // of the parts
  std::optional<Mixture> mixture_ = {};
};

}  // namespace lockstep

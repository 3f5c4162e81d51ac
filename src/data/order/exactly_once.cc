#include "data/order/exactly_once.h"

#include "base/error.h"

namespace lockstep {

ExactlyOnce::ExactlyOnce(int64_t records)
    : records_(records), missing_(records), read_(static_cast<size_t>((records + 63) / 64)) {}

void ExactlyOnce::add(int64_t record) {
  LOCKSTEP_CHECK(record >= 0 && record < records_, "record {} of {}", record, records_);
  uint64_t& word = read_[static_cast<size_t>(record / 64)];
  const uint64_t bit = uint64_t{1} << (record % 64);
  if ((word & bit) != 0) {
    ++repeated_;
    return;
  }
  word |= bit;
  --missing_;
}

}  // namespace lockstep

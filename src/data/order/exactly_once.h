// ExactlyOnce: counts which of N records were read, with one bit each, to prove that an epoch leaves none out
// and repeats none.
#pragma once
#include <cstdint>
#include <vector>

namespace lockstep {

class ExactlyOnce {
 public:
  explicit ExactlyOnce(int64_t records);

  // Throws InternalError for a record that there is not.
  void add(int64_t record);

  int64_t repeated() const { return repeated_; }  // reads of a record that had been read
  int64_t missing() const { return missing_; }    // records that were not read yet
  bool holds() const { return repeated_ == 0 && missing_ == 0; }

 private:
  int64_t records_;
  int64_t repeated_ = 0;
  int64_t missing_;
  std::vector<uint64_t> read_;
};

}  // namespace lockstep

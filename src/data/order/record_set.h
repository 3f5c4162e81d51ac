// RecordSet: some of a source's records, in their order: a bit for each, and counts that make finding the
// i-th of them quick. 10^9 records take 140 MB.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class RecordSet {
 public:
  // Bit r % 64 of word r / 64 says whether record r belongs to the set.
  RecordSet(std::vector<uint64_t> bits, int64_t records);

  int64_t records() const { return records_; }  // of the source
  int64_t size() const { return before_.back(); }
  bool contains(int64_t record) const {
    return (bits_[static_cast<size_t>(record / 64)] >> (record % 64) & 1) != 0;
  }
  // Bit i says whether record `first` + i belongs to it; those past the last record are 0.
  uint64_t word(int64_t first) const;
  // The i-th record of the set.
  int64_t operator[](int64_t i) const;
  // out[k] = the (first + k)-th record of the set.
  void copy(int64_t first, std::span<int64_t> out) const;
  // How many records of the set have a smaller number.
  int64_t before(int64_t record) const;

  static RecordSet all(int64_t records);
  RecordSet complement() const;
  RecordSet operator&(const RecordSet& other) const;
  RecordSet operator|(const RecordSet& other) const;
  // The first so many of the set.
  RecordSet first(int64_t count) const;

  // As bytes, and back. Throws UserError for bytes that are no set of that many records.
  std::string bytes() const;
  static RecordSet from_bytes(std::string_view bytes, int64_t records);

 private:
  static constexpr int64_t kWords = 8;  // in a group

  std::vector<uint64_t> bits_;
  int64_t records_;
  std::vector<int64_t> before_;  // records of the set before each group, and in all
};

}  // namespace lockstep

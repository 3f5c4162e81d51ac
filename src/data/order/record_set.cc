#include "data/order/record_set.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace lockstep {

RecordSet::RecordSet(std::vector<uint64_t> bits, int64_t records)
    : bits_(std::move(bits)), records_(records) {
  LOCKSTEP_CHECK(static_cast<int64_t>(bits_.size()) == (records + 63) / 64, "{} words for {} records",
                 bits_.size(), records);
  if (records % 64 != 0) bits_.back() &= (uint64_t{1} << (records % 64)) - 1;
  int64_t count = 0;
  for (size_t word = 0; word < bits_.size(); ++word) {
    if (word % kWords == 0) before_.push_back(count);
    count += std::popcount(bits_[word]);
  }
  before_.push_back(count);
}

uint64_t RecordSet::word(int64_t first) const {
  const auto at = static_cast<size_t>(first / 64);
  const int64_t shift = first % 64;
  if (shift == 0) return bits_[at];
  const uint64_t next = at + 1 < bits_.size() ? bits_[at + 1] << (64 - shift) : 0;
  return bits_[at] >> shift | next;
}

int64_t RecordSet::operator[](int64_t i) const {
  const auto group = std::upper_bound(before_.begin(), before_.end(), i) - before_.begin() - 1;
  int64_t left = i - before_[static_cast<size_t>(group)];
  auto word = static_cast<size_t>(group * kWords);
  for (;; ++word) {
    const int64_t here = std::popcount(bits_[word]);
    if (left < here) break;
    left -= here;
  }
  uint64_t bits = bits_[word];
  for (; left > 0; --left) bits &= bits - 1;
  return static_cast<int64_t>(word) * 64 + std::countr_zero(bits);
}

void RecordSet::copy(int64_t first, std::span<int64_t> out) const {
  if (out.empty()) return;
  int64_t record = (*this)[first];
  out[0] = record;
  auto word = static_cast<size_t>(record / 64);
  // Without the bits up to this record.
  uint64_t bits = bits_[word] & ~((uint64_t{2} << (record % 64)) - 1);
  for (size_t k = 1; k < out.size(); ++k) {
    while (bits == 0) bits = bits_[++word];
    out[k] = static_cast<int64_t>(word) * 64 + std::countr_zero(bits);
    bits &= bits - 1;
  }
}

int64_t RecordSet::before(int64_t record) const {
  if (record >= records_) return size();
  const auto end = static_cast<size_t>(record / 64);
  size_t word = end / kWords * kWords;
  int64_t count = before_[end / kWords];
  for (; word < end; ++word) count += std::popcount(bits_[word]);
  return count + std::popcount(bits_[end] & ((uint64_t{1} << (record % 64)) - 1));
}

RecordSet RecordSet::all(int64_t records) {
  return {std::vector<uint64_t>(static_cast<size_t>((records + 63) / 64), UINT64_MAX), records};
}

RecordSet RecordSet::operator&(const RecordSet& other) const {
  LOCKSTEP_CHECK(records_ == other.records_, "sets of {} and {} records", records_, other.records_);
  std::vector<uint64_t> bits = bits_;
  for (size_t i = 0; i < bits.size(); ++i) bits[i] &= other.bits_[i];
  return {std::move(bits), records_};
}

RecordSet RecordSet::operator|(const RecordSet& other) const {
  LOCKSTEP_CHECK(records_ == other.records_, "sets of {} and {} records", records_, other.records_);
  std::vector<uint64_t> bits = bits_;
  for (size_t i = 0; i < bits.size(); ++i) bits[i] |= other.bits_[i];
  return {std::move(bits), records_};
}

RecordSet RecordSet::first(int64_t count) const {
  std::vector<uint64_t> bits = bits_;
  const int64_t end = count < size() ? (*this)[count] : records_;
  for (size_t word = static_cast<size_t>(end / 64); word < bits.size(); ++word)
    bits[word] &= word == static_cast<size_t>(end / 64) ? (uint64_t{1} << (end % 64)) - 1 : 0;
  return {std::move(bits), records_};
}

RecordSet RecordSet::complement() const {
  std::vector<uint64_t> bits = bits_;
  for (uint64_t& word : bits) word = ~word;
  return {std::move(bits), records_};
}

std::string RecordSet::bytes() const {
  return {reinterpret_cast<const char*>(bits_.data()), bits_.size() * sizeof(uint64_t)};
}

RecordSet RecordSet::from_bytes(std::string_view bytes, int64_t records) {
  std::vector<uint64_t> bits(static_cast<size_t>((records + 63) / 64));
  if (bytes.size() != bits.size() * sizeof(uint64_t))
    throw UserError("{} bytes are no set of {} records", bytes.size(), records);
  std::memcpy(bits.data(), bytes.data(), bytes.size());
  return {std::move(bits), records};
}

}  // namespace lockstep

#include "data/source/wrapped_source.h"

#include <algorithm>

#include "base/error.h"
#include "base/sha256.h"

namespace lockstep {

int64_t held_out(int64_t size, double share) {
  if (!(share >= 0 && share < 1))
    throw UserError("the held-out share is {}; use at least 0 and less than 1, such as 0.1", share);
  if (share == 0) return 0;
  const int64_t count = std::max<int64_t>(static_cast<int64_t>(static_cast<double>(size) * share), 1);
  if (count >= size)
    throw UserError("{} records are too few to hold {} of them out; use more data", size, share);
  return count;
}

SliceSource::SliceSource(std::shared_ptr<const Source> source, int64_t first, int64_t count)
    : WrappedSource(std::move(source)), first_(first), count_(count) {
  LOCKSTEP_CHECK(first >= 0 && count > 0 && first + count <= wrapped().size(), "records [{}, {}) of {}",
                 first, first + count, wrapped().size());
}

std::vector<int64_t> SliceSource::moved(std::span<const int64_t> records) const {
  std::vector<int64_t> moved(records.begin(), records.end());
  for (int64_t& record : moved)
    if (record != kNoRecord) record += first_;
  return moved;
}

void SliceSource::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  wrapped().fill(moved(records), batch);
}

void SliceSource::fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                                 Batch& batch) const {
  check_fill(records, batch);
  wrapped().fill_in_epochs(moved(records), epochs, batch);
}

void SliceSource::expect(std::span<const int64_t> records, std::span<const int64_t> epochs) const {
  wrapped().expect(moved(records), epochs);
}

std::string SliceSource::fingerprint() const {
  return sha256(fmt::format("slice 1\n{} {}\n{}\n", first_, count_, wrapped().fingerprint()));
}

namespace {

constexpr uint64_t kSeed = 0, kStream = 0x5ca77e;  // the same for every run: what is held out stays held out

}  // namespace

ScatteredSource::ScatteredSource(std::shared_ptr<const Source> source)
    : WrappedSource(std::move(source)), places_(kSeed, kStream, wrapped().size()) {}

std::vector<int64_t> ScatteredSource::places(std::span<const int64_t> records) const {
  std::vector<int64_t> places(records.begin(), records.end());
  for (int64_t& record : places)
    if (record != kNoRecord) record = places_(record);
  return places;
}

void ScatteredSource::fill(std::span<const int64_t> records, Batch& batch) const {
  check_fill(records, batch);
  wrapped().fill(places(records), batch);
}

void ScatteredSource::fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                                     Batch& batch) const {
  check_fill(records, batch);
  wrapped().fill_in_epochs(places(records), epochs, batch);
}

void ScatteredSource::expect(std::span<const int64_t> records, std::span<const int64_t> epochs) const {
  wrapped().expect(places(records), epochs);
}

std::string ScatteredSource::fingerprint() const {
  return sha256(fmt::format("scattered 1\n{}\n", wrapped().fingerprint()));
}

}  // namespace lockstep

#include "data/scattered.h"

#include "base/error.h"
#include "base/sha256.h"

namespace lockstep {
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

void ScatteredSource::expect(std::span<const int64_t> records, std::span<const int64_t> epochs,
                             bool hint) const {
  wrapped().expect(places(records), epochs, hint);
}

std::string ScatteredSource::fingerprint() const {
  return sha256(fmt::format("scattered 1\n{}\n", wrapped().fingerprint()));
}

}  // namespace lockstep

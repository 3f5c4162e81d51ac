#include "data/subset.h"

#include "base/error.h"
#include "base/sha256.h"

namespace lockstep {

SubsetSource::SubsetSource(std::shared_ptr<const Source> source, RecordSet set, std::string definition)
    : source_(std::move(source)), set_(std::move(set)), definition_(std::move(definition)) {
  LOCKSTEP_CHECK(set_.records() == source_->size(), "a set of {} records for {}", set_.records(),
                 source_->size());
}

std::vector<int64_t> SubsetSource::originals(std::span<const int64_t> records, const Batch& batch) const {
  check_fill(records, batch);
  std::vector<int64_t> originals(records.begin(), records.end());
  for (int64_t& record : originals)
    if (record != kNoRecord) record = set_[record];
  return originals;
}

void SubsetSource::fill(std::span<const int64_t> records, Batch& batch) const {
  source_->fill(originals(records, batch), batch);
}

void SubsetSource::fill_in_epochs(std::span<const int64_t> records, std::span<const int64_t> epochs,
                                  Batch& batch) const {
  source_->fill_in_epochs(originals(records, batch), epochs, batch);
}

std::string SubsetSource::fingerprint() const {
  return sha256(fmt::format("subset 1\n{}\n{}\n", definition_, source_->fingerprint()));
}

}  // namespace lockstep

#include "data/shards/manifest.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/sha256.h"

namespace lockstep {
namespace {

constexpr int64_t kBlockBytes = 64 << 10;
constexpr int64_t kMostBlockRecords = 4096;

}  // namespace

DataManifest::DataManifest(std::vector<DataShard> shards) : shards_(std::move(shards)), firsts_{0} {
  for (const DataShard& shard : shards_) {
    firsts_.push_back(firsts_.back() + shard.records);
    bytes_ += shard.bytes;
  }
  if (records() == 0) throw UserError("the data has no records; give at least one");
}

DataManifest::Place DataManifest::locate(int64_t record) const {
  LOCKSTEP_CHECK(record >= 0 && record < records(), "record {} of {}", record, records());
  const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), record);
  const auto shard = static_cast<size_t>(after - firsts_.begin()) - 1;
  return {shard, record - firsts_[shard]};
}

int64_t DataManifest::block_records() const {
  const int64_t fitting = kBlockBytes / std::max<int64_t>(bytes_ / records(), 1);
  return static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(fitting, 1, kMostBlockRecords))));
}

std::string DataManifest::fingerprint() const {
  std::string text = "manifest 1\n";
  for (const DataShard& shard : shards_) text += fmt::format("{} {}\n", shard.records, shard.content);
  return sha256(text);
}

}  // namespace lockstep

// Who belongs to which part of the data, decided by a hash of an entity's key (a card, a user, a document):
// all records of one entity fall on the same side, whoever asks and however the data grows or is sharded.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep {

// The same for a key on every machine and in every version.
uint64_t entity_hash(uint64_t seed, std::string_view key);
uint64_t entity_hash(uint64_t seed, int64_t key);

// Parts with shares of the entities that sum to 1.
class EntitySplit {
 public:
  // Throws UserError for a share that is not in (0, 1], or for a sum that is not 1.
  EntitySplit(uint64_t seed, const std::vector<double>& shares);

  int64_t part_of(std::string_view key) const { return part_of_hash(entity_hash(seed_, key)); }
  int64_t part_of(int64_t key) const { return part_of_hash(entity_hash(seed_, key)); }

 private:
  int64_t part_of_hash(uint64_t hash) const;

  uint64_t seed_;
  std::vector<uint64_t> ends_;  // of the parts' ranges of hashes, less the last
};

// Keeps a share of some records (those of the common class, say) and gives the kept ones the weight that
// restores their sum. Which ones are kept is a function of the seed and the record's number, or the key of
// its entity: then all records of an entity are kept or none.
class DownSample {
 public:
  // Throws UserError for a share that is not in (0, 1].
  DownSample(uint64_t seed, double keep);

  bool keeps(int64_t record) const;
  bool keeps(std::string_view key) const { return keeps_hash(entity_hash(seed_ ^ kEntities, key)); }
  float weight() const { return weight_; }

 private:
  // Apart from the entities of a split.
  static constexpr uint64_t kEntities = 0x73616d706c650000;
  bool keeps_hash(uint64_t hash) const { return threshold_ == UINT64_MAX || hash < threshold_; }

  uint64_t seed_;
  uint64_t threshold_;
  float weight_;
};

}  // namespace lockstep

// RecordWeights: how much each training record counts in the loss: one of two weights. They are scaled so
// that their mean over the training records is 1, and a learning rate keeps its meaning.
#pragma once
#include <memory>
#include <string>

#include "data/order/record_set.h"

namespace lockstep {

// The column that holds them, where records have weights.
inline constexpr const char* kWeightsColumn = "weights";

struct RecordWeights {
  std::shared_ptr<const RecordSet> heavy;  // of all records
  float heavy_weight = 1, light_weight = 1;
  std::string text = {};  // for the fingerprint

  float of(int64_t record) const { return heavy->contains(record) ? heavy_weight : light_weight; }
};

}  // namespace lockstep

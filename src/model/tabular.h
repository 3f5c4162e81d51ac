// tabular: categorical tables, dense features and an MLP over their pairwise products, as for fraud detection
// or recommendation (the DLRM shape).
#pragma once
#include <vector>

#include "model/model.h"

namespace lockstep {

struct TabularSizes {
  int64_t tables = 26;
  int64_t rows = 100000;  // per table
  int64_t dim = 32;
  int64_t dense = 13;
  std::vector<int64_t> bottom{512, 256};  // then dim
  std::vector<int64_t> top{512, 256};     // then one per class, or 1
  int64_t batch = 2048;
  bool training = true;  // false: the graph to evaluate with
  bool weighted = false;
  Task task = Task::kBinary;  // or kClassify, kRegress
  int64_t classes = 2;        // of kClassify
  TargetScale target = {};    // of kRegress
};

// Inputs: dense f32[B,dense], category.<i> i32[B] per table, labels f32[B], or i32[B] to classify; if
// weighted, weights f32[B], by which the samples' losses are multiplied. Either of dense and tables may be 0:
// without tables there are no products, without dense there is no bottom, and the rows of the tables stand
// beside their products instead.
Model build_tabular(const TabularSizes& sizes);

}  // namespace lockstep

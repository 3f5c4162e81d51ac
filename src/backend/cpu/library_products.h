// The floor under a training step: what oneDNN alone takes for the matrix products and convolutions of a
// graph.
//
// Every distinct product runs by itself, as one call that may use all threads: dnnl_sgemm, a primitive on the
// operands as they lie in the graph, and a primitive on the layouts that oneDNN likes best, whose reorders
// are not counted. The fastest run of the fastest call counts. These calls sum in oneDNN's own order, which
// depends on the number of threads, and are no part of training.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace lockstep::cpu {

// One product of a graph. Its sizes, by name, are what another library needs to time the same product.
struct LibraryProduct {
  std::string op;
  std::vector<std::pair<std::string, int64_t>> sizes;
  int64_t count = 0;        // how often the graph has it
  double milliseconds = 0;  // one call
  std::string call = {};    // which was the fastest
};

std::vector<LibraryProduct> library_products(const Graph& graph, int threads);

}  // namespace lockstep::cpu

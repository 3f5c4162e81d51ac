// How a CPU kernel presents itself: which op, when it refuses, how it is made.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/kernel.h"
#include "base/thread_pool.h"
#include "graph/op_def.h"

namespace lockstep::cpu {

struct Simd;

// What kernels keep a reference to: the threads and the loops of the chosen instruction set.
struct CpuContext {
  ThreadPool& pool;
  const Simd& simd;
};

// As KernelDef::op: serves every op with the pointwise trait.
inline constexpr std::string_view kAnyPointwise = "any pointwise";

struct KernelDef {
  std::string_view op;
  std::string_view name;
  // Empty when the kernel can run the node, otherwise the reason why not.
  std::string (*refuse)(const Graph&, const Node&);
  std::unique_ptr<Kernel> (*make)(const Graph&, const Node&, const CpuContext&);
};

// The usual `make`: a kernel class built from (graph, node, context).
template <typename KernelClass>
std::unique_ptr<Kernel> make_kernel(const Graph& graph, const Node& node, const CpuContext& context) {
  return std::make_unique<KernelClass>(graph, node, context);
}

// All CPU kernels; for one op the first that does not refuse is taken.
const std::vector<KernelDef>& all_kernels();

// Common refusals. Each returns "" or the reason.
std::string refuse_unless_f32(const Graph& graph,
                              const Node& node);  // floating operands and results must be f32
std::string refuse_nothing(const Graph& graph, const Node& node);

// Rows of work per task: a constant number of elements, never a function of the number of threads.
inline constexpr int64_t kTaskElements = 16384;
inline int64_t rows_per_task(int64_t columns) {
  return columns >= kTaskElements ? 1 : kTaskElements / (columns > 0 ? columns : 1);
}
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Runs body(begin, end) over [0, rows) in fixed pieces of `grain` rows.
template <typename Body>
void for_rows(const CpuContext& context, int64_t rows, int64_t grain, const Body& body) {
  context.pool.run(ceil_div(rows, grain), [&](int64_t task) {
    const int64_t begin = task * grain;
    body(begin, begin + grain < rows ? begin + grain : rows);
  });
}

}  // namespace lockstep::cpu

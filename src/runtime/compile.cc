#include "runtime/compile.h"

#include <chrono>

namespace lockstep {

Plan compile_plan(const Graph& graph, Backend& backend, const PassOptions& options, const Region& region,
                  CompileReport* report) {
  PassOptions passes = options;
  passes.product_epilogues = backend.has_product_epilogues();
  Graph lowered = run_passes(graph, passes, report != nullptr ? &report->passes : nullptr);
  const auto start = std::chrono::steady_clock::now();
  Plan plan = make_plan(std::move(lowered), backend, region);
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
  if (report != nullptr) report->plan_milliseconds = elapsed.count();
  return plan;
}

std::unique_ptr<Executable> compile(const Graph& graph, Backend& backend, const PassOptions& options,
                                    const Region& region, CompileReport* report) {
  return std::make_unique<Executable>(compile_plan(graph, backend, options, region, report), backend);
}

}  // namespace lockstep

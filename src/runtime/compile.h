// compile: a model's graph becomes a plan or an executable: passes, kernels, memory.
#pragma once
#include <memory>
#include <vector>

#include "passes/pipeline.h"
#include "runtime/executable.h"

namespace lockstep {

struct CompileReport {
  std::vector<PassTiming> passes;
  double plan_milliseconds = 0;
};

Plan compile_plan(const Graph& graph, Backend& backend, const PassOptions& options = {},
                  const Region& region = {}, CompileReport* report = nullptr);

// The same with memory.
std::unique_ptr<Executable> compile(const Graph& graph, Backend& backend, const PassOptions& options = {},
                                    const Region& region = {}, CompileReport* report = nullptr);

}  // namespace lockstep

#include "train/guard/fp32_twin.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <vector>

#include "base/error.h"
#include "graph/op_def.h"

namespace lockstep {
namespace {

bool all_finite(const Type& type, const void* data, Backend& backend) {
  if (!is_floating(type.dtype) || type.bytes() == 0) return true;
  std::vector<char> host(static_cast<size_t>(type.bytes()));
  backend.download(host.data(), data, type.bytes());
  for (int64_t i = 0; i < type.shape.numel(); ++i)
    if (!std::isfinite(read_element(type.dtype, host.data(), i))) return false;
  return true;
}

bool run_twin(const Model& model, Executable& backward, Backend& backend, const PassOptions& passes) {
  const auto twin = compile(model.graph, backend, passes);
  std::vector<std::unique_ptr<Buffer>> own;
  for (const GraphInput& input : twin->graph().inputs()) {
    const std::string& name = twin->graph().name(input.value);
    const Value same = backward.graph().find(name);
    const bool written = input.role == Role::kGrad || input.role == Role::kStatistic;
    if (!written && same.valid()) {
      twin->bind(name, backward.address_of(same));
      continue;
    }
    own.push_back(backend.allocate(twin->graph().type(input.value).bytes()));
    twin->bind(name, own.back()->data());
  }
  twin->run();
  return results_finite(*twin, backend);
}

}  // namespace

bool results_finite(Executable& executable, Backend& backend) {
  const Graph& graph = executable.graph();
  if (!all_finite(graph.type(graph.outputs()[0].value), executable.output(0), backend)) return false;
  return std::all_of(graph.inputs().begin(), graph.inputs().end(), [&](const GraphInput& input) {
    return input.role != Role::kGrad ||
           all_finite(graph.type(input.value), executable.address_of(input.value), backend);
  });
}

std::optional<bool> finite_in_fp32(const Model& model, Executable& backward, Backend& backend,
                                   PassOptions passes) {
  // Parameters that are gathered unit by unit are nowhere as a whole.
  for (const GraphInput& input : model.graph.inputs())
    if (input.role == Role::kParam) {
      const Value same = backward.graph().find(model.graph.name(input.value));
      if (!same.valid() || backward.graph().producer(same) >= 0) return std::nullopt;
    }
  passes.compute = DType::kF32;
  passes.accumulate_gradients = false;
  passes.disabled.emplace_back("row_gradients");
  passes.dump_after.clear();
  passes.explain = nullptr;
  try {
    return run_twin(model, backward, backend, passes);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  } catch (const DeviceError&) {
    return std::nullopt;
  }
}

}  // namespace lockstep

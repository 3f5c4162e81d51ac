#include "use/batch_runner.h"

#include <algorithm>

#include "base/error.h"
#include "train/evaluate/evaluate.h"

namespace lockstep {
namespace {

size_t index_of(const std::vector<Column>& columns, const std::string& name) {
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
  if (found == columns.end()) throw UserError("the model takes {}, which these records do not have", name);
  return static_cast<size_t>(found - columns.begin());
}

}  // namespace

BatchRunner::BatchRunner(const Model& model, Backend& backend, const PassOptions& passes,
                         const AddressOf& address_of)
    : backend_(backend), batch_(model.samples) {
  executable_ = std::make_unique<Executable>(plan_evaluation(model, backend, passes), backend);
  const Graph& graph = executable_->graph();
  for (const GraphInput& input : graph.inputs()) {
    const std::string& name = graph.name(input.value);
    if (input.role != Role::kInput) {
      executable_->bind(name, address_of(name));
      continue;
    }
    const Type& type = graph.type(input.value);
    inputs_.push_back({name, type, backend.allocate(type.bytes())});
    executable_->bind(name, inputs_.back().buffer->data());
  }
}

void BatchRunner::run(const std::vector<Column>& columns, std::span<const void* const> inputs, int64_t first,
                      int64_t count) {
  LOCKSTEP_CHECK(count >= 1 && count <= batch_, "{} records in a batch of {}", count, batch_);
  for (const Input& input : inputs_) {
    const size_t place = index_of(columns, input.name);
    const Column& column = columns[place];
    const int64_t row = input.type.bytes() / batch_;
    if (column.shape.numel() * size_of(column.dtype) != row || column.dtype != input.type.dtype)
      throw UserError("the model takes {} as {}, but the data has {} of shape {} per record", input.name,
                      to_string(input.type), name_of(column.dtype), to_string(column.shape));
    const auto* from = static_cast<const std::byte*>(inputs[place]) + first * row;
    auto* to = static_cast<std::byte*>(input.buffer->data());
    backend_.upload(to, from, count * row);
    for (int64_t r = count; r < batch_; ++r) backend_.upload(to + r * row, from, row);
  }
  executable_->run();
}

}  // namespace lockstep

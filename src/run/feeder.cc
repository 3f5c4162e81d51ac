#include "run/feeder.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace lockstep {
namespace {

// Inputs that the step fills itself.
constexpr std::string_view kOwnInputs[] = {"rng", "rounding"};

void check_columns(const Source& source, const TrainStep& step) {
  const std::vector<Column> columns = source.columns();
  for (const std::string& input : step.input_names()) {
    if (std::count(std::begin(kOwnInputs), std::end(kOwnInputs), input) > 0) continue;
    const bool found = std::any_of(columns.begin(), columns.end(),
                                   [&](const Column& column) { return column.name == input; });
    if (found) continue;
    std::string names;
    for (const Column& column : columns) names += (names.empty() ? "" : ", ") + column.name;
    throw UserError("the model takes {}, which the data does not have; the data has {}", input, names);
  }
}

}  // namespace

Feeder::Feeder(const Source& source, Order order, int64_t microbatch, int64_t microbatches,
               const TrainStep& step)
    : source_(source),
      order_(order),
      microbatch_(microbatch),
      microbatches_(microbatches),
      batch_(source.columns(), microbatch) {
  check_columns(source, step);
}

std::vector<int64_t> Feeder::records(int64_t step_number, int64_t microbatch) const {
  std::vector<int64_t> records(static_cast<size_t>(microbatch_));
  order_.records(((step_number - 1) * microbatches_ + microbatch) * microbatch_, records);
  return records;
}

void Feeder::load(TrainStep& step, int64_t step_number, int64_t microbatch) {
  const auto start = std::chrono::steady_clock::now();
  source_.fill(records(step_number, microbatch), batch_);
  for (size_t i = 0; i < batch_.columns().size(); ++i)
    if (step.has_input(batch_.columns()[i].name))
      step.set_input(batch_.columns()[i].name, batch_.data(i), batch_.bytes(i));
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace lockstep

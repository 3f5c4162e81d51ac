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

Feeder::Feeder(const Source& source, const StepOrder& order, const TrainStep& step, int64_t steps,
               const StreamOptions& options)
    : source_(source), order_(order), tree_(step.tree()), options_(options) {
  check_columns(source, step);
  begin(1, steps);
}

void Feeder::begin(int64_t first_step, int64_t steps) {
  stream_.reset();
  first_step_ = first_step;
  BatchPlan plan;
  plan.batches = steps * tree_.microbatches();
  plan.rows = order_.microbatch();
  plan.records = [this](int64_t batch, int64_t row, std::span<int64_t> records,
                        std::vector<int64_t>* epochs) {
    const int64_t own = tree_.microbatches();
    order_.records((first_step_ - 1 + batch / own) * order_.samples(), tree_.microbatch(batch % own), row,
                   records, epochs);
  };
  stream_ = std::make_unique<BatchStream>(source_, std::move(plan), options_);
}

std::vector<int64_t> Feeder::records(int64_t step_number, int64_t microbatch) const {
  std::vector<int64_t> records;
  order_.records((step_number - 1) * order_.samples(), microbatch, records);
  return records;
}

const Batch& Feeder::batch_of(int64_t step_number, int64_t microbatch) {
  if (const auto index = tree_.index_of(microbatch))
    return stream_->get((step_number - first_step_) * tree_.microbatches() + *index);
  // Only a diagnosis looks at what others do.
  if (!other_) other_ = std::make_unique<Batch>(source_.columns(), order_.microbatch());
  std::vector<int64_t> records, epochs;
  order_.records((step_number - 1) * order_.samples(), microbatch, records, &epochs);
  source_.fill_in_epochs(records, epochs, *other_);
  return *other_;
}

void Feeder::load(TrainStep& step, int64_t step_number, int64_t microbatch) {
  const auto start = std::chrono::steady_clock::now();
  const Batch& batch = batch_of(step_number, microbatch);
  for (size_t i = 0; i < batch.columns().size(); ++i)
    if (step.has_input(batch.columns()[i].name))
      step.set_input(batch.columns()[i].name, batch.data(i), batch.bytes(i));
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

InputSummary input_summary(const InputReport& report) {
  const auto seconds = [](int64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); };
  const auto& work = report.stages.nanoseconds;
  return {.batches = report.batches,
          .readers = report.readers,
          .ahead = report.ahead,
          .fetched_bytes = report.stages.bytes,
          .blocks = report.stages.blocks,
          .decoded = report.stages.decoded,
          .memory_peak_bytes = report.peak_bytes,
          .memory_limit_bytes = report.budget,
          .wait_fetch = report.waited[0],
          .wait_decode = report.waited[1],
          .wait_transform = report.waited[2],
          .wait_assemble = report.waited[3],
          .wait_reorder = report.waited[kReorderWait],
          .wait_consumer = report.consumer,
          .fetch = seconds(work[0]),
          .decode = seconds(work[1]),
          .transform = seconds(work[2]),
          .assemble = seconds(work[3]),
          .verdict = report.sentence()};
}

}  // namespace lockstep

// lockstep data at JOB POSITION: which record stands at a position of a run, where it lies and what it holds;
// with --step, which records a whole step reads. Nothing of a run has to exist: the order is arithmetic.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>

#include "base/error.h"
#include "cli/data_job.h"
#include "cli/data_values.h"
#include "prepare/job_data.h"

namespace lockstep {
namespace {

struct AtOptions {
  std::optional<int64_t> position;
  std::optional<int64_t> step;
  bool inputs = false;
};

// One sample of a step.
struct Sample {
  int64_t position, microbatch, row, record, epoch;
};

std::vector<Sample> samples_of(const StepOrder& order, int64_t step) {
  std::vector<Sample> samples;
  const int64_t first = (step - 1) * order.samples();
  std::vector<int64_t> positions(static_cast<size_t>(order.microbatch())), records, epochs;
  for (int64_t microbatch = 0; microbatch < order.microbatches(); ++microbatch) {
    order.positions(first, microbatch, positions);
    order.records(first, microbatch, records, &epochs);
    for (size_t row = 0; row < records.size(); ++row)
      samples.push_back({positions[row], microbatch, static_cast<int64_t>(row), records[row], epochs[row]});
  }
  return samples;
}

void print_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::cout << "  " << line << "\n";
}

void print_position(const JobParts& parts, int64_t position, bool inputs) {
  const Source& source = *parts.data.train;
  const StepOrder order = job_order(parts);
  const int64_t step = position / order.samples() + 1;
  const std::vector<Sample> samples = samples_of(order, step);
  const auto found = std::find_if(samples.begin(), samples.end(),
                                  [&](const Sample& sample) { return sample.position == position; });
  LOCKSTEP_CHECK(found != samples.end(), "step {} does not read position {}", step, position);
  std::cout << fmt::format("position {}: epoch {}, step {}, microbatch {}, row {}\n", position, found->epoch,
                           step, found->microbatch, found->row)
            << fmt::format("record {} of {}: {}\n", found->record, source.size(),
                           source.describe(found->record));
  print_lines(column_lines(source, found->record));
  if (source.files() != nullptr && !inputs) return;
  const BlockPlace place{static_cast<uint64_t>(parts.spec.data.seed), found->epoch, found->record};
  if (const auto made = made_lines(source, parts.data.transforms, place); !made.empty()) {
    std::cout << "made by transforms\n";
    print_lines(made);
  }
  std::cout << "inputs of the model\n";
  print_lines(input_lines(source, found->record, found->epoch));
}

void print_step(const JobParts& parts, int64_t step) {
  const Source& source = *parts.data.train;
  std::cout << "microbatch\trow\tposition\tepoch\trecord\tplace\n";
  for (const Sample& sample : samples_of(job_order(parts), step))
    std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", sample.microbatch, sample.row, sample.position,
                             sample.epoch, sample.record, source.describe(sample.record));
}

void run_data_at(const DataJob& job, const AtOptions& options) {
  if (options.position.has_value() == options.step.has_value())
    throw UserError("lockstep data at takes a position or --step, one of the two");
  const JobParts parts = open_parts(job);
  if (options.step)
    print_step(parts, *options.step);
  else
    print_position(parts, *options.position, options.inputs);
}

}  // namespace

void add_data_at(CLI::App& data) {
  // Far beyond any run, and far from where products with it overflow.
  constexpr int64_t kMost = int64_t{1} << 48;
  CLI::App* command = data.add_subcommand("at", "print which record a position or a step of a run means");
  const auto job = add_data_job(*command);
  auto options = std::make_shared<AtOptions>();
  command->add_option("position", options->position, "counts the records that the run has read before")
      ->check(CLI::Range(int64_t{0}, kMost));
  command->add_option("--step", options->step, "list what this step reads; the first is 1")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32));
  command->add_flag("--inputs", options->inputs, "also what the model gets");
  command->callback([job, options] { run_data_at(*job, *options); });
}

}  // namespace lockstep

// lockstep data shuffle-report JOB: how well a job's order mixes its records, beside what a random order
// would give. Reads no records.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>

#include "base/error.h"
#include "cli/data_job.h"
#include "data/order/shuffle_report.h"
#include "job/choices.h"
#include "prepare/job_data.h"

namespace lockstep {
namespace {

struct ShuffleReportOptions {
  int64_t positions = int64_t{1} << 20;
  bool all = false;
};

// The records of positions [0, count), in the order of positions: a step's microbatches take them by lanes.
std::vector<int64_t> records_of(const StepOrder& order, int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count)), records;
  std::vector<int64_t> positions(static_cast<size_t>(order.microbatch()));
  for (int64_t first = 0; first < count; first += order.samples())
    for (int64_t microbatch = 0; microbatch < order.microbatches(); ++microbatch) {
      order.positions(first, microbatch, positions);
      order.records(first, microbatch, records);
      for (size_t i = 0; i < records.size(); ++i)
        if (positions[i] < count) all[static_cast<size_t>(positions[i])] = records[i];
    }
  return all;
}

void print(const ShuffleReport& report, bool all) {
  // The largest of 64 correlations of a random order stays below this, but for one order in thirty.
  const double noise = 3.5 / std::sqrt(static_cast<double>(report.positions));
  const auto worst = static_cast<size_t>(report.worst_lag() - 1);
  std::cout
      << fmt::format(
             "correlation of record numbers at lags 1 to {}: at most {:.4f}, at lag {}; a random order of "
             "so many: below {:.4f}\n",
             report.correlation.size(), std::abs(report.correlation[worst]), worst + 1, noise)
      << fmt::format("displacement: {:.4f} of an epoch in the mean; a random order: 0.3333\n",
                     report.displacement)
      << fmt::format("blocks of a step: {} to {}, {:.1f} in the mean; a random order: {:.1f}\n",
                     report.least_blocks, report.most_blocks, report.mean_blocks, report.expected_blocks);
  const auto near = std::max_element(report.same_block.begin(), report.same_block.end());
  std::cout << fmt::format("pairs from one block: at most {:.4f}, at lag {}\n", *near,
                           near - report.same_block.begin() + 1);
  if (!all) return;
  std::cout << "lag\tcorrelation\tpairs from one block\n";
  for (size_t i = 0; i < report.correlation.size(); ++i)
    std::cout << fmt::format("{}\t{:.5f}\t{:.5f}\n", i + 1, report.correlation[i], report.same_block[i]);
}

// Of a mixture, each source by itself: the records of its first epoch as they come.
void print_sources(const JobParts& parts, const StepOrder& order, const ShuffleReportOptions& options) {
  const ReadOrder sources = job_read_order(parts.spec, parts.data);
  const std::vector<int64_t> records = records_of(order, options.positions);
  std::vector<std::vector<int64_t>> own(static_cast<size_t>(sources.parts()));
  for (const int64_t record : records) {
    const int64_t part = sources.part_of(record);
    auto& read = own[static_cast<size_t>(part)];
    if (static_cast<int64_t>(read.size()) < sources.size_of(part))
      read.push_back(record - sources.first_of(part));
  }
  for (size_t i = 0; i < own.size(); ++i) {
    const int64_t size = sources.size_of(static_cast<int64_t>(i)), read = static_cast<int64_t>(own[i].size());
    std::cout << fmt::format("{}: {} of {} records\n", parts.spec.data.train.files[i], read, size);
    if (read < 2) continue;
    // What a step has of this source.
    const int64_t step = std::max<int64_t>(1, order.samples() * read / options.positions);
    print(report_shuffle({own[i], 0, size, parts.data.train->block_records(), step}), options.all);
  }
}

void run_data_shuffle_report(const DataJob& job, const ShuffleReportOptions& options) {
  const JobParts parts = open_parts(job);
  const Source& train = *parts.data.train;
  if (train.size() < 2) throw UserError("one record has no order; a report needs two at least");
  const StepOrder order = job_order(parts);
  if (!parts.spec.data.train.weights.empty()) {
    ShuffleReportOptions mixed = options;
    mixed.positions = std::min(options.positions, 4 * train.size());
    std::cout << fmt::format("shuffle {}: a mixture, by its sources over {} positions\n",
                             name_of(parts.spec.data.shuffle), mixed.positions);
    return print_sources(parts, order, mixed);
  }
  const int64_t count = std::min(options.positions, train.size());
  const std::vector<int64_t> records = records_of(order, count);
  std::cout << fmt::format("shuffle {}: {} of {} records, blocks of {}, steps of {} samples\n",
                           name_of(parts.spec.data.shuffle), count, train.size(), train.block_records(),
                           order.samples());
  print(report_shuffle({records, 0, train.size(), train.block_records(), order.samples()}), options.all);
}

}  // namespace

void add_data_shuffle_report(CLI::App& data) {
  CLI::App* command = data.add_subcommand("shuffle-report", "print how well a job's order mixes its records");
  const auto job = add_data_job(*command);
  auto options = std::make_shared<ShuffleReportOptions>();
  command->add_option("--positions", options->positions, "how many to look at, from the start of the run")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 28))
      ->capture_default_str();
  command->add_flag("--all", options->all, "the figures of every lag");
  command->callback([job, options] { run_data_shuffle_report(*job, *options); });
}

}  // namespace lockstep

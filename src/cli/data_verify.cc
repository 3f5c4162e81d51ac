// lockstep data verify JOB: walks a whole epoch as 1, 2, 3 ... workers would and proves that together they
// read every record exactly once, in one and the same sequence; with --read, that they also get the same
// bytes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "base/sha256.h"
#include "base/thread_pool.h"
#include "cli/data_job.h"
#include "cli/exit.h"
#include "comm/leaf_split.h"
#include "data/order/exactly_once.h"
#include "data/pipeline/batch_stream.h"
#include "run/job_data.h"
#include "run/job_options.h"
#include "run/job_reading.h"

namespace lockstep {
namespace {

struct VerifyOptions {
  std::vector<int> workers;
  int64_t epoch = 0;
  bool read = false;
};

// Steps [begin, end) counted from 0 hold the epoch; the first and the last may hold parts of others.
struct Steps {
  int64_t begin, end;
};

Steps steps_of(const JobParts& parts, int64_t epoch) {
  const int64_t size = parts.data.train->size(), samples = job_order(parts).samples();
  return {epoch * size / samples, ((epoch + 1) * size + samples - 1) / samples};
}

struct Walk {
  int64_t repeated = 0, missing = 0;
  std::string sequence;  // SHA-256 of the record numbers, in the order of steps and microbatches

  bool operator==(const Walk&) const = default;
};

// Every worker is asked for its own microbatches only.
Walk walk(const JobParts& parts, int64_t epoch, const LeafSplit& split) {
  const StepOrder order = job_order(parts);
  const int64_t per_leaf = order.microbatches() / split.leaves();
  const Steps steps = steps_of(parts, epoch);
  ExactlyOnce read(parts.data.train->size());
  Sha256 sequence;
  std::vector<int64_t> records, epochs;
  for (int64_t step = steps.begin; step < steps.end; ++step)
    for (int worker = 0; worker < split.ranks(); ++worker) {
      const LeafRange own = split.range(worker);
      for (int64_t microbatch = own.begin * per_leaf; microbatch < own.end * per_leaf; ++microbatch) {
        order.records(step * order.samples(), microbatch, records, &epochs);
        sequence.update(std::as_bytes(std::span(records)));
        for (size_t i = 0; i < records.size(); ++i)
          if (epochs[i] == epoch) read.add(records[i]);
      }
    }
  return {read.repeated(), read.missing(), sequence.finish()};
}

// The microbatches of one worker, made ahead as in training.
std::unique_ptr<BatchStream> stream_of(const JobParts& parts, const StepOrder& order, Steps steps,
                                       LeafRange own, StreamOptions options) {
  const int64_t per_leaf = order.microbatches() / parts.resolved.leaves;
  const int64_t first = own.begin * per_leaf, count = own.size() * per_leaf;
  BatchPlan plan;
  plan.batches = (steps.end - steps.begin) * count;
  plan.records = [=, &order](int64_t batch, std::vector<int64_t>& records, std::vector<int64_t>* epochs) {
    order.records((steps.begin + batch / count) * order.samples(), first + batch % count, records, epochs);
  };
  return std::make_unique<BatchStream>(*parts.data.train, std::move(plan), options);
}

// SHA-256 of all that the workers' steps get, in the order of steps and microbatches.
std::string read_epoch(const JobParts& parts, int64_t epoch, const LeafSplit& split) {
  const StepOrder order = job_order(parts);
  const JobReading reading(parts.spec);
  StreamOptions options = reading.train();
  options.budget /= split.ranks();
  const Steps steps = steps_of(parts, epoch);
  const int64_t per_leaf = order.microbatches() / split.leaves();
  std::vector<std::unique_ptr<BatchStream>> workers;
  for (int worker = 0; worker < split.ranks(); ++worker)
    workers.push_back(stream_of(parts, order, steps, split.range(worker), options));
  Sha256 content;
  for (int64_t step = 0; step < steps.end - steps.begin; ++step)
    for (int worker = 0; worker < split.ranks(); ++worker) {
      const int64_t count = split.range(worker).size() * per_leaf;
      for (int64_t i = 0; i < count; ++i) {
        const Batch& batch = workers[static_cast<size_t>(worker)]->get(step * count + i);
        for (size_t c = 0; c < batch.columns().size(); ++c)
          content.update({static_cast<const std::byte*>(batch.data(c)), static_cast<size_t>(batch.bytes(c))});
      }
    }
  return content.finish();
}

// Counts beyond the leaves cannot train at all.
std::vector<int> default_workers(int64_t leaves) {
  std::vector<int> counts;
  for (const int count : {1, 2, 3, 7, 8})
    if (count <= leaves) counts.push_back(count);
  return counts;
}

// One line; false if it does not hold.
bool print_walk(const VerifyOptions& options, int workers, const Walk& walk, const Walk& expected) {
  const bool once = walk.repeated == 0 && walk.missing == 0;
  std::cout << fmt::format("{} worker{}: {}, sequence {}{}\n", workers, workers == 1 ? "" : "s",
                           once ? std::string("every record exactly once")
                                : fmt::format("{} records missing and {} read again in epoch {}",
                                              walk.missing, walk.repeated, options.epoch),
                           walk.sequence.substr(0, 16),
                           walk.sequence == expected.sequence ? "" : ", which is ANOTHER one");
  return once && walk.sequence == expected.sequence;
}

bool verify_content(const JobParts& parts, const VerifyOptions& options,
                    const std::vector<LeafSplit>& splits) {
  bool holds = true;
  std::string expected;
  for (size_t i = 0; i < splits.size(); ++i) {
    const std::string content = read_epoch(parts, options.epoch, splits[i]);
    if (i == 0) expected = content;
    holds = holds && content == expected;
    std::cout << fmt::format("{} worker{}: content {}{}\n", splits[i].ranks(),
                             splits[i].ranks() == 1 ? "" : "s", content.substr(0, 16),
                             content == expected ? "" : ", which is ANOTHER one")
              << std::flush;
  }
  return holds;
}

void run(const DataJob& job, VerifyOptions options) {
  const JobParts parts = open_parts(job);
  if (options.workers.empty()) options.workers = default_workers(parts.resolved.leaves);
  std::vector<LeafSplit> splits;
  for (const int count : options.workers) splits.push_back(LeafSplit::search(parts.resolved.leaves, count));
  std::vector<Walk> walks(splits.size());
  ThreadPool pool(std::clamp(job_threads(parts.spec), 1, static_cast<int>(splits.size())));
  pool.run(static_cast<int64_t>(splits.size()), [&](int64_t i) {
    walks[static_cast<size_t>(i)] = walk(parts, options.epoch, splits[static_cast<size_t>(i)]);
  });
  bool holds = true;
  for (size_t i = 0; i < walks.size(); ++i)
    holds = print_walk(options, options.workers[i], walks[i], walks[0]) && holds;
  if (options.read) holds = verify_content(parts, options, splits) && holds;
  if (!holds) {
    std::cerr << "lockstep: the order of this job does not hold; see above\n";
    throw Exit{1};
  }
  std::cout << fmt::format("epoch {}: each of {} records exactly once, in one sequence for {} workers\n",
                           options.epoch, parts.data.train->size(), fmt::join(options.workers, ", "));
}

}  // namespace

void add_data_verify(CLI::App& data) {
  CLI::App* command = data.add_subcommand(
      "verify", "prove that an epoch reads every record once, in one sequence for any number of workers");
  const auto job = add_data_job(*command);
  auto options = std::make_shared<VerifyOptions>();
  command->add_option("--workers", options->workers, "the worker counts to compare, as in 1,2,3,7,8")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command->add_option("--epoch", options->epoch, "which epoch; the first is 0")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
  command->add_flag("--read", options->read, "also read and decode the epoch, and compare what workers get");
  command->callback([job, options] { run(*job, *options); });
}

}  // namespace lockstep

// lockstep data verify JOB: walks a whole epoch as 1, 2, 3 ... workers would and proves that together they
// read every record exactly once, in one and the same sequence; with --read, that they also get the same
// bytes. The sources of a mixture have epochs of their own: the run is walked until all of them have ended.
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
#include "data/order/shuffle_report.h"
#include "data/stream/batch_stream.h"
#include "prepare/job_data.h"
#include "prepare/job_options.h"
#include "prepare/job_reading.h"

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
  if (!parts.spec.data.train.weights.empty()) return {0, parts.steps()};
  const int64_t size = parts.data.train->size(), samples = job_order(parts).samples();
  return {epoch * size / samples, ((epoch + 1) * size + samples - 1) / samples};
}

// One source: all records, or an entry of data.train.files where these are mixed.
struct SourceWalk {
  ExactlyOnce read;
  bool passed = false;  // records of a later epoch were met, so this one is over

  bool ended() const { return passed || read.missing() == 0; }
};

struct Walk {
  std::vector<SourceWalk> sources;
  std::string sequence;  // SHA-256 of the record numbers, in the order of steps and microbatches
  int64_t steps = 0;
};

// Every worker is asked for its own microbatches only.
Walk walk(const JobParts& parts, int64_t epoch, const LeafSplit& split) {
  const StepOrder order = job_order(parts);
  const ReadOrder sources = job_read_order(parts.spec, parts.data);
  const int64_t per_leaf = order.microbatches() / split.leaves();
  const Steps steps = steps_of(parts, epoch);
  Walk walk;
  for (int64_t i = 0; i < sources.parts(); ++i) walk.sources.push_back({ExactlyOnce(sources.size_of(i))});
  const auto all_ended = [&] {
    return std::all_of(walk.sources.begin(), walk.sources.end(),
                       [](const SourceWalk& s) { return s.ended(); });
  };
  Sha256 sequence;
  std::vector<int64_t> records, epochs;
  for (int64_t step = steps.begin; step < steps.end && !(sources.mixed() && all_ended());
       ++step, ++walk.steps)
    for (int worker = 0; worker < split.ranks(); ++worker) {
      const LeafRange own = split.range(worker);
      for (int64_t microbatch = own.begin * per_leaf; microbatch < own.end * per_leaf; ++microbatch) {
        order.records(step * order.samples(), microbatch, records, &epochs);
        sequence.update(std::as_bytes(std::span(records)));
        for (size_t i = 0; i < records.size(); ++i) {
          const int64_t source = sources.part_of(records[i]);
          SourceWalk& read = walk.sources[static_cast<size_t>(source)];
          if (epochs[i] == epoch) read.read.add(records[i] - sources.first_of(source));
          read.passed = read.passed || (sources.mixed() && epochs[i] > epoch);
        }
      }
    }
  walk.sequence = sequence.finish();
  return walk;
}

// The microbatches of one worker, made ahead as in training.
std::unique_ptr<BatchStream> stream_of(const JobParts& parts, const StepOrder& order, Steps steps,
                                       LeafRange own, StreamOptions options) {
  const int64_t per_leaf = order.microbatches() / parts.resolved.leaves;
  const int64_t first = own.begin * per_leaf, count = own.size() * per_leaf;
  BatchPlan plan;
  plan.batches = (steps.end - steps.begin) * count;
  plan.rows = order.microbatch();
  plan.records = [=, &order](int64_t batch, int64_t row, std::span<int64_t> records,
                             std::vector<int64_t>* epochs) {
    order.records((steps.begin + batch / count) * order.samples(), first + batch % count, row, records,
                  epochs);
  };
  return std::make_unique<BatchStream>(*parts.data.train, std::move(plan), options);
}

// SHA-256 of all that the workers' steps get, in the order of steps and microbatches.
std::string read_epoch(const JobParts& parts, int64_t epoch, const LeafSplit& split) {
  const StepOrder order = job_order(parts);
  const JobReading reading(parts.spec, parts.host);
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
  int64_t repeated = 0, missing = 0;
  for (const SourceWalk& source : walk.sources) {
    repeated += source.read.repeated();
    // The end of the run may come before that of a mixed source's epoch.
    if (walk.sources.size() == 1 || source.passed) missing += source.read.missing();
  }
  const bool once = repeated == 0 && missing == 0;
  std::cout << fmt::format(
      "{} worker{}: {}, sequence {}{}\n", workers, workers == 1 ? "" : "s",
      once
          ? std::string("every record exactly once")
          : fmt::format("{} records missing and {} read again in epoch {}", missing, repeated, options.epoch),
      walk.sequence.substr(0, 16), walk.sequence == expected.sequence ? "" : ", which is ANOTHER one");
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

void print_sources(const JobParts& parts, const VerifyOptions& options, const Walk& walk) {
  for (size_t i = 0; i < walk.sources.size(); ++i) {
    const SourceWalk& source = walk.sources[i];
    const int64_t all = job_read_order(parts.spec, parts.data).size_of(static_cast<int64_t>(i));
    std::cout << fmt::format("{}: epoch {}, {} of {} records, each once{}\n", parts.spec.data.train.files[i],
                             options.epoch, all - source.read.missing(), all,
                             source.read.missing() == 0
                                 ? std::string()
                                 : fmt::format("; the run of {} steps ends before the rest", walk.steps));
  }
}

void run_data_verify(const DataJob& job, VerifyOptions options) {
  const JobParts parts = open_parts(job);
  if (options.workers.empty()) options.workers = default_workers(parts.resolved.leaves);
  std::vector<LeafSplit> splits;
  for (const int count : options.workers) splits.push_back(LeafSplit::search(parts.resolved.leaves, count));
  std::vector<Walk> walks(splits.size());
  ThreadPool pool(std::clamp(job_threads(parts.spec, parts.host), 1, static_cast<int>(splits.size())));
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
  if (walks[0].sources.size() > 1) {
    print_sources(parts, options, walks[0]);
    std::cout << fmt::format("one sequence for {} workers\n", fmt::join(options.workers, ", "));
    return;
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
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--epoch", options->epoch, "which epoch; the first is 0")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
  command->add_flag("--read", options->read, "also read and decode the epoch, and compare what workers get");
  command->callback([job, options] { run_data_verify(*job, *options); });
}

}  // namespace lockstep

// lockstep data index JOB: builds the indexes of a job's files ahead of the run, with data.cache their rows
// too, and shows how far it is. What is already there is not made again.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>

#include "base/number_text.h"
#include "cli/data_job.h"
#include "cli/index_line.h"
#include "data/shards/shard_set.h"
#include "job/files.h"
#include "job/parse.h"
#include "job/resolve.h"
#include "prepare/job_data.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

void print_part(const char* what, const Source* source) {
  const ShardSet* files = source == nullptr ? nullptr : source->files();
  if (files == nullptr) return;
  const DataManifest& manifest = files->manifest();
  std::cout << fmt::format("{}: {} records in {} shards, {}\n", what, manifest.records(),
                           manifest.shards().size(), bytes_text(manifest.bytes()));
}

void run_data_index(const DataJob& job) {
  const JobSpec spec = load_job(job.file, job.overrides);
  resolve(spec);
  require_files(spec);
  if (!spec.data.train.format || *spec.data.train.format == DataFormat::kSynthetic) {
    std::cout << "this job's records are generated: there is nothing to index\n";
    return;
  }
  const Clock::time_point start = Clock::now();
  IndexLine indexing("indexing"), writing("writing rows");
  const auto index = [&](int64_t done, int64_t all) { indexing.show(done, all); };
  const auto write = [&](int64_t done, int64_t all) {
    indexing.finish();
    writing.show(done, all);
  };
  const Data data = open_job_data(spec, expected_share(spec), true, index, write);
  indexing.finish();
  writing.finish();
  print_part("training", data.train.get());
  if (data.eval && data.eval->files() != data.train->files()) print_part("evaluation", data.eval.get());
  if (spec.data.cache == DataCache::kRows) std::cout << "the rows of all of them are kept\n";
  std::cout << fmt::format("indexed in {:.2f} s\n",
                           std::chrono::duration<double>(Clock::now() - start).count());
}

}  // namespace

void add_data_index(CLI::App& data) {
  CLI::App* command = data.add_subcommand("index", "build the indexes of a job's files ahead of the run");
  const auto job = add_data_job(*command);
  command->callback([job] { run_data_index(*job); });
}

}  // namespace lockstep

// lockstep data inspect JOB: what a job's data is: shards, records, columns, bad records, fingerprint, and
// how an epoch is divided into steps.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>

#include "base/number_text.h"
#include "cli/data_job.h"
#include "data/shards/shard_set.h"
#include "data/table/table_report.h"
#include "job/choices.h"
#include "prepare/job_data.h"
#include "prepare/warnings.h"

namespace lockstep {
namespace {

// More are counted, unless all are asked for.
constexpr size_t kMostLines = 20;

std::string type_of(const BlockField& field) {
  if (field.width == 1) return std::string(name_of(field.type));
  return fmt::format("{}[{}]", name_of(field.type),
                     field.width == kVarying ? "any" : std::to_string(field.width));
}

template <typename Line>
void print_lines(size_t count, bool all, const Line& line) {
  const size_t shown = all ? count : std::min(count, kMostLines);
  for (size_t i = 0; i < shown; ++i) std::cout << "  " << line(i) << "\n";
  if (shown < count) std::cout << fmt::format("  and {} more (--all lists them)\n", count - shown);
}

// What the columns are to the model, and what all records hold of them; then those that it does not get.
void print_columns(const TableReport& report) {
  std::cout << fmt::format("columns that are read: {}\n", report.used.size());
  print_lines(report.used.size(), true, [&](size_t i) {
    const UsedColumn& column = report.used[i];
    return fmt::format("{} {}, {}{}{}", column.field.name, type_of(column.field), name_of(column.role),
                       column.facts ? ": " + facts_text(*column.facts) : "",
                       column.facts && column.facts->decides_label ? "; decides the label" : "");
  });
  std::cout << fmt::format("columns that are left out: {}\n", report.left_out.size());
  if (report.left_out.empty()) return;
  const std::map<std::string, ColumnFacts> facts = report.left_out_facts();
  print_lines(report.left_out.size(), true, [&](size_t i) {
    const LeftOutColumn& column = report.left_out[i];
    const auto found = facts.find(column.name);
    return fmt::format("{}: {}{}{}{}", column.name, column.reason,
                       found == facts.end() ? "" : fmt::format(" ({})", facts_text(found->second)),
                       column.advice.empty() ? "" : "; ", column.advice);
  });
}

// `report` is of its columns; null: there is none, or it has been printed.
void print_files(const ShardSet& files, const TableReport* report, bool all) {
  const std::vector<DataShard>& shards = files.manifest().shards();
  std::cout << fmt::format("{}: {} records in {} shards, {}\n", files.format().name(),
                           files.manifest().records(), shards.size(), bytes_text(files.manifest().bytes()));
  print_lines(shards.size(), all, [&](size_t i) {
    return fmt::format("{}: {} records, {}, content {}", shards[i].name, shards[i].records,
                       bytes_text(shards[i].bytes), shards[i].content.substr(0, 16));
  });
  if (report == nullptr) {
    const std::vector<BlockField>& fields = files.fields();
    std::cout << fmt::format("columns that are read: {}\n", fields.size());
    print_lines(fields.size(), true,
                [&](size_t i) { return fmt::format("{} {}", fields[i].name, type_of(fields[i])); });
  } else {
    print_columns(*report);
  }
  const std::vector<std::string> bad = files.bad_records();
  std::cout << fmt::format("bad records that are left out: {}\n", files.bad_count());
  print_lines(bad.size(), all, [&](size_t i) { return bad[i]; });
}

void print_source(const char* what, const Source& source) {
  std::cout << fmt::format("{}: {} records, fingerprint {}\n", what, source.size(), source.fingerprint());
}

void run_data_inspect(const DataJob& job, bool all) {
  const JobParts parts = open_parts(job);
  const Source& train = *parts.data.train;
  const Source* eval = parts.data.eval.get();
  if (train.files() != nullptr)
    print_files(*train.files(), parts.data.report.get(), all);
  else
    std::cout << fmt::format("{}: no files that are read in parts\n", name_of(*parts.spec.data.train.format));
  if (eval != nullptr && eval->files() != nullptr && eval->files() != train.files()) {
    std::cout << "to evaluate on, ";
    print_files(*eval->files(), nullptr, all);
  }
  const std::vector<Column> columns = train.columns();
  std::cout << "inputs of the model\n";
  print_lines(columns.size(), true, [&](size_t i) {
    return fmt::format("{} {}{}", columns[i].name, name_of(columns[i].dtype), to_string(columns[i].shape));
  });
  print_source("training", train);
  if (eval != nullptr) print_source("evaluation", *eval);
  for (const std::string& warning : job_warnings(parts)) std::cout << fmt::format("warning: {}\n", warning);
  const StepOrder order = job_order(parts);
  std::cout << fmt::format(
      "order: shuffle {}, blocks of {} records; a step reads {} samples in {} microbatches, an epoch is {} "
      "steps\n",
      name_of(parts.spec.data.shuffle), train.block_records(), order.samples(), order.microbatches(),
      short_number(static_cast<double>(train.size()) / static_cast<double>(order.samples()), 6));
}

}  // namespace

void add_data_inspect(CLI::App& data) {
  CLI::App* command =
      data.add_subcommand("inspect", "print a job's shards, records, columns, bad records and fingerprint");
  const auto job = add_data_job(*command);
  auto all = std::make_shared<bool>(false);
  command->add_flag("--all", *all, "list every shard and every bad record");
  command->callback([job, all] { run_data_inspect(*job, *all); });
}

}  // namespace lockstep

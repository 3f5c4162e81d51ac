// What the tools of `lockstep data` have in common: each takes a job file, since the job names the files, the
// order and the seed.
#pragma once
#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "prepare/job_parts.h"

namespace lockstep {

struct DataJob {
  std::string file;
  std::vector<std::string> overrides;
};

// Adds the job file and --set to a command.
std::shared_ptr<DataJob> add_data_job(CLI::App& command);
// Everything that training would have before its first step; indexes that are missing are built.
JobParts open_parts(const DataJob& job);

void add_data_index(CLI::App& data);
void add_data_inspect(CLI::App& data);
void add_data_at(CLI::App& data);
void add_data_verify(CLI::App& data);
void add_data_shuffle_report(CLI::App& data);
void add_data_transforms(CLI::App& data);  // needs no job

}  // namespace lockstep

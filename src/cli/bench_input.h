// lockstep data bench JOB, also lockstep bench input JOB: how fast a job's training records can be read, and
// how long steps of given lengths wait for them.
#pragma once
#include <CLI/App.hpp>
#include <string>

namespace lockstep {

void add_bench_input_command(CLI::App& parent, const std::string& name);

}  // namespace lockstep

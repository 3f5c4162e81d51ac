// lockstep bench allreduce: times all-reduce between local ranks.
#pragma once
#include <CLI/App.hpp>

namespace lockstep {

void add_bench_allreduce_command(CLI::App& bench);

}  // namespace lockstep

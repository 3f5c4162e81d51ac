// lockstep bench order: what asking for the record at a position costs, in time and in memory.
#pragma once
#include <CLI/App.hpp>

namespace lockstep {

void add_bench_order_command(CLI::App& bench);

}  // namespace lockstep

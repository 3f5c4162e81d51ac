// lockstep bench step: times full training steps of a model on synthetic data.
#pragma once
#include <CLI/App.hpp>

namespace lockstep {

void add_bench_step_command(CLI::App& bench);

}  // namespace lockstep

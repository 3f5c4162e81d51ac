// lockstep bench tokenize: how fast texts become ids, and which, for those who compare them.
#pragma once
#include <CLI/App.hpp>

namespace lockstep {

void add_bench_tokenize_command(CLI::App& bench);

}  // namespace lockstep

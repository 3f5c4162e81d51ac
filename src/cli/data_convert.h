// lockstep data convert: data files from one format to another.
#pragma once
#include <CLI/CLI.hpp>

namespace lockstep {

void add_data_convert(CLI::App& data);

}  // namespace lockstep

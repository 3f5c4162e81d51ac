// lockstep env: what this machine offers.
#include <CLI/CLI.hpp>
#include <iostream>
#include <thread>

#include "backend/backend.h"
#include "backend/cuda/cuda_backend.h"
#include "cli/cli.h"

namespace lockstep {

void add_env_command(CLI::App& app) {
  app.add_subcommand("env", "print what this machine offers")->callback([] {
    std::cout << "cpu backend: " << make_cpu_backend(1)->architecture() << "\n"
              << "cores: " << std::thread::hardware_concurrency() << "\n";
    for (const std::string& line : describe_cuda()) std::cout << "cuda: " << line << "\n";
    const auto device = make_backend({.kind = DeviceKind::kAuto});
    std::cout << "device: auto means " << device->name() << "\n";
  });
}

}  // namespace lockstep

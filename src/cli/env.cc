// lockstep env: what this machine offers.
#include <CLI/CLI.hpp>
#include <iostream>

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "backend/cuda/cuda_backend.h"
#include "base/cores.h"
#include "cli/cli.h"

namespace lockstep {

void add_env_command(CLI::App& app) {
  app.add_subcommand("env", "print what this machine offers")->callback([] {
    const auto backend = make_cpu_backend(1);
    const std::string_view bf16 = cpu::bf16_products();
    const Cores cores = available_cores();
    std::cout << "cpu backend: " << backend->architecture() << "\n"
              << "bf16 products: " << (bf16.empty() ? "converted" : bf16) << "\n"
              << "cores: " << cores.usable << " usable of " << cores.machine << "\n";
    if (cores.quota) std::cout << "cpu quota: " << *cores.quota << "\n";
    for (const std::string& line : describe_cuda()) std::cout << "cuda: " << line << "\n";
    std::cout << "device: auto means " << make_backend({.kind = DeviceKind::kAuto})->name() << "\n";
  });
}

}  // namespace lockstep
